#include "base/keyed_random.h"

#include "base/assert.h"
#include "base/random.h"

namespace forebay {

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiply0 = 0xD2511F53;
  constexpr uint64_t kMultiply1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiply0 * counter[0];
    const uint64_t product1 = kMultiply1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

KeyedRandom::KeyedRandom(const RandomPlace& place) {
  const uint64_t key = DeriveKey(
      DeriveKey(DeriveKey(place.seed, HashName("rng/v1")), HashName(place.op)), place.epoch);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  counter_ = {0, place.occurrence, static_cast<uint32_t>(place.sample),
              static_cast<uint32_t>(place.sample >> 32)};
}

void KeyedRandom::Refill() {
  block_ = Philox4x32(counter_, key_);
  ++counter_[0];
  at_ = 0;
}

uint64_t KeyedRandom::NextU64() {
  const uint64_t low = NextU32();
  return static_cast<uint64_t>(NextU32()) << 32 | low;
}

double KeyedRandom::NextUniform(double low, double high) {
  // volatile: a fused multiply-add, which some machines have, would round once.
  const volatile double scaled = (high - low) * NextDouble();
  return low + scaled;
}

uint64_t KeyedRandom::NextBelow(uint64_t n) {
  FB_ASSERT(n > 0);
  while (true) {
    const Wide product = static_cast<Wide>(NextU64()) * n;
    const auto low = static_cast<uint64_t>(product);
    if (low >= n || low >= -n % n) return static_cast<uint64_t>(product >> 64);
  }
}

}  // namespace forebay
