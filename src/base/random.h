// Counter-based random numbers: a draw is a pure function of its key, never of what was drawn
// before. Used for order, jitter and simulation.
#pragma once

#include <cstdint>
#include <string_view>

namespace forebay {

// splitmix64's finaliser (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
// generators", with Stafford's variant 13 constants).
constexpr uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Hashes (key, value) -> key; keys derived so never collide by addition (seed s, epoch e+1 is not
// seed s+1, epoch e).
constexpr uint64_t DeriveKey(uint64_t key, uint64_t value) {
  return Mix64(Mix64(key + 0x9e3779b97f4a7c15ULL) ^
               (value * 0xd6e8feb86659fd93ULL + 0x2545f4914f6cdd1dULL));
}
// FNV-1a, to turn a purpose's name into a number at compile time.
constexpr uint64_t HashName(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

// A stream of numbers from one key: number i is Mix64 of (key, i).
__extension__ using Wide = unsigned __int128;

class Random {
 public:
  explicit Random(uint64_t key) : key_(key) {}
  uint64_t Next() { return DeriveKey(key_, counter_++); }
  // [0, 1)
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // [0, n), n > 0; the bias is below 2^-64 * n.
  uint64_t NextBelow(uint64_t n) {
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64);
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace forebay
