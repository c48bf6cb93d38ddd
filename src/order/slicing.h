// Which rows of an epoch's order are whose. The global batch is cut first and then sliced by rank,
// so that what a batch holds never depends on workers or ranks.
#pragma once

#include <cstdint>
#include <optional>

namespace forebay::order {

// What becomes of the samples at an epoch's end that fill no whole global batch. Every rank takes
// the same number of batches in each case.
enum class Tail : uint8_t {
  kDrop,    // they are left out
  kPad,     // filled up to a multiple of the world size by repeating the epoch's first, declared
  kRagged,  // shared out as they are: some ranks get a row less, or none
};

// This rank's share of the batches. Positions count samples of the epoch over all ranks. Ranks that
// must see the same data (tensor, pipeline, context parallel) share one slice: `rank` and
// `world_size` count slices (SliceOfRank).
struct Slicing {
  uint64_t batch_size = 1;  // per rank
  uint64_t world_size = 1;
  uint64_t rank = 0;
  Tail tail = Tail::kDrop;
  // Of the rank's batches only each `stride`th, from number `offset` of an epoch on.
  uint64_t stride = 1;
  uint64_t offset = 0;
};

struct BatchSlice {
  uint64_t first_position = 0;  // of the whole global batch
  uint64_t global_samples = 0;  // real samples in the global batch (what the position advances by)
  uint64_t offset = 0;          // this rank's first row, counted from first_position
  uint64_t rows = 0;            // of this rank; 0 is possible for a ragged tail
};

// Whether the global batch that starts at `position` is one of those that `stride` leaves.
bool TakesBatchAt(const Slicing& slicing, uint64_t position);

// The global batch that starts at `position` of an epoch of `samples`; nullopt: the epoch is over.
std::optional<BatchSlice> SliceAt(const Slicing& slicing, uint64_t samples, uint64_t position);

// Row `i` of a slice: its position, and whether it repeats an earlier one (padding wraps to the
// epoch's start).
struct Row {
  uint64_t position = 0;
  bool pad = false;
};
Row RowOf(const BatchSlice& slice, uint64_t samples, uint64_t i);

// Batches that this slicing takes of an epoch from `position` on.
uint64_t BatchesFrom(const Slicing& slicing, uint64_t samples, uint64_t position);

}  // namespace forebay::order
