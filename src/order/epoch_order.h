// One epoch's order of one source: a pure function of (samples, seed, epoch), in O(1) memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "order/block_order.h"
#include "order/block_table.h"
#include "order/permutation.h"

namespace forebay::order {

struct Sequential {
  bool operator==(const Sequential&) const = default;
};
// Every order is possible; each sample is a read of its own.
struct GlobalShuffle {
  bool operator==(const GlobalShuffle&) const = default;
};
using Shuffle = std::variant<Sequential, GlobalShuffle, BlockShuffle>;

struct OrderSpec {
  uint64_t samples = 0;
  uint64_t seed = 0;
  Shuffle shuffle = GlobalShuffle{};
  std::shared_ptr<const BlockTable> blocks = nullptr;  // for a BlockShuffle; of `samples` samples
};

// Not thread-safe (a block shuffle keeps its latest windows).
class EpochOrder {
 public:
  EpochOrder(const OrderSpec& spec, uint64_t epoch);
  // The sample at position p < samples.
  uint64_t SampleAt(uint64_t position);
  // Of the positions from `first` on.
  void SamplesAt(uint64_t first, std::span<uint64_t> samples);
  // The position of a sample.
  uint64_t PositionOf(uint64_t sample);
  // See BlockOrder; 0 where there are no windows.
  uint64_t WindowOf(uint64_t position) const;
  uint64_t samples() const { return samples_; }

 private:
  uint64_t samples_;
  std::variant<Sequential, Permutation, BlockOrder> how_;
};

// The substitute for a bad sample: a pure function too, so that ranks and reruns agree.
uint64_t SubstituteFor(const OrderSpec& spec, uint64_t epoch, uint64_t position, uint64_t attempt);

}  // namespace forebay::order
