// The order of a run: a pure function of (sample count, seed, epoch). The global batch is cut first
// and then sliced by rank, so that membership never depends on workers or ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "order/permutation.h"

namespace forebay::order {

struct OrderSpec {
  uint64_t samples = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  bool operator==(const OrderSpec&) const = default;
};

// One epoch's order.
class EpochOrder {
 public:
  EpochOrder(const OrderSpec& spec, uint64_t epoch);
  // The sample at global position p < samples.
  uint64_t SampleAt(uint64_t position) const;
  // The position of a sample.
  uint64_t PositionOf(uint64_t sample) const;
  uint64_t samples() const { return permutation_.size(); }

 private:
  Permutation permutation_;
  bool shuffle_;
};

// This rank's share of the batches. Positions count samples of the epoch over all ranks.
struct Slicing {
  uint64_t batch_size = 1;  // per rank
  uint64_t world_size = 1;
  uint64_t rank = 0;
  bool drop_last = true;
};

struct BatchSlice {
  uint64_t first_position = 0;  // of the whole global batch
  uint64_t global_samples = 0;  // real samples in the global batch (what the position advances by)
  uint64_t offset = 0;          // this rank's first row, counted from first_position
  uint64_t rows = 0;            // of this rank
};

// The global batch that starts at `position` of an epoch of `samples`; nullopt: the epoch is over.
// drop_last: only whole global batches. Otherwise the last one is padded to a multiple of the world
// size and split equally.
std::optional<BatchSlice> SliceAt(const Slicing& slicing, uint64_t samples, uint64_t position);

// Row `i` of a slice: its position, and whether it repeats an earlier one (padding wraps to the
// epoch's start).
struct Row {
  uint64_t position = 0;
  bool pad = false;
};
Row RowOf(const BatchSlice& slice, uint64_t samples, uint64_t i);

// Batches of a whole epoch from `position` on.
uint64_t BatchesFrom(const Slicing& slicing, uint64_t samples, uint64_t position);

// The substitute for a bad sample: a pure function too, so that ranks and reruns agree.
uint64_t SubstituteFor(const OrderSpec& spec, uint64_t epoch, uint64_t position, uint64_t attempt);

}  // namespace forebay::order
