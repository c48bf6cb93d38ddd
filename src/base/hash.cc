#include "base/hash.h"

#include <fmt/core.h>

#include "base/random.h"

namespace forebay {

std::string Hash128::ToHex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 HashBytes(ByteView bytes) {
  constexpr uint64_t kLow = 0x9e3779b97f4a7c15ULL;
  constexpr uint64_t kHigh = 0xc2b2ae3d27d4eb4fULL;
  uint64_t low = kLow;
  uint64_t high = kHigh;
  size_t at = 0;
  const auto add = [&](uint64_t word) {
    low = (low ^ Mix64(word + kLow)) * 0xbf58476d1ce4e5b9ULL;
    low ^= low >> 29;
    high = (high ^ Mix64(word ^ kHigh)) * 0x94d049bb133111ebULL;
    high ^= high >> 31;
  };
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    add(word);
  }
  uint64_t tail = 0;
  if (at < bytes.size()) {
    std::memcpy(&tail, bytes.data() + at, bytes.size() - at);
    add(tail);
  }
  add(bytes.size());
  return {Mix64(low), Mix64(high)};
}

}  // namespace forebay
