// Random numbers for what is done to a sample: a pure function of (seed, op, epoch, sample,
// occurrence), so that the same crop comes on any worker, rank, thread count and restart. Philox
// 4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "forebay/status.h"

namespace forebay {

// Whose numbers they are. `op` names what they are for: two ops of one sample are independent.
// `occurrence`: 0 but for a sample that comes again in its epoch (padding).
struct RandomPlace {
  uint64_t seed = 0;
  std::string_view op;
  uint64_t epoch = 0;
  uint64_t sample = 0;
  uint32_t occurrence = 0;
};

// Version 1: the key is the hash of (seed, op, epoch), the counter (block, occurrence, sample).
// Frozen by test vectors. Not thread-safe; a copy goes on alone.
class FOREBAY_API KeyedRandom {
 public:
  explicit KeyedRandom(const RandomPlace& place);

  uint32_t NextU32() {
    if (at_ == block_.size()) Refill();
    return block_[at_++];
  }
  // The next two words, the first one low.
  uint64_t NextU64();
  // [0, 1), a multiple of 2^-53.
  double NextDouble() { return static_cast<double>(NextU64() >> 11) * 0x1.0p-53; }
  // low + (high - low) * NextDouble(), each operation rounded: the same on every machine.
  double NextUniform(double low, double high);
  // [0, n) without bias (Lemire 2019, "Fast random integer generation in an interval"); n > 0.
  uint64_t NextBelow(uint64_t n);

  // The hash of (seed, op, epoch): for a generator of another library that is to be keyed alike.
  uint64_t key() const { return static_cast<uint64_t>(key_[1]) << 32 | key_[0]; }

 private:
  void Refill();

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  size_t at_ = 4;
};

}  // namespace forebay
