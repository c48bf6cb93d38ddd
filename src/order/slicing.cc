#include "order/slicing.h"

#include <algorithm>

#include "base/assert.h"

namespace forebay::order {

bool TakesBatchAt(const Slicing& slicing, uint64_t position) {
  const uint64_t step = position / (slicing.batch_size * slicing.world_size);
  return step % slicing.stride == slicing.offset;
}

std::optional<BatchSlice> SliceAt(const Slicing& slicing, uint64_t samples, uint64_t position) {
  const uint64_t global = slicing.batch_size * slicing.world_size;
  if (position >= samples) return std::nullopt;
  const uint64_t left = samples - position;
  if (left >= global) {
    return BatchSlice{position, global, slicing.rank * slicing.batch_size, slicing.batch_size};
  }
  const uint64_t least = left / slicing.world_size;
  const uint64_t more = left % slicing.world_size;  // so many ranks take one more
  switch (slicing.tail) {
    case Tail::kDrop:
      return std::nullopt;
    case Tail::kPad: {
      const uint64_t rows = least + (more > 0 ? 1 : 0);
      return BatchSlice{position, left, slicing.rank * rows, rows};
    }
    case Tail::kRagged:
      break;
  }
  const uint64_t before = slicing.rank * least + std::min(slicing.rank, more);
  return BatchSlice{position, left, before, least + (slicing.rank < more ? 1 : 0)};
}

Row RowOf(const BatchSlice& slice, uint64_t samples, uint64_t i) {
  FB_ASSERT(i < slice.rows);
  const uint64_t at = slice.offset + i;
  if (at < slice.global_samples) return {slice.first_position + at, false};
  return {(at - slice.global_samples) % samples, true};
}

uint64_t BatchesFrom(const Slicing& slicing, uint64_t samples, uint64_t position) {
  const uint64_t global = slicing.batch_size * slicing.world_size;
  const uint64_t left = samples - std::min(position, samples);
  const uint64_t batches =
      left / global + (slicing.tail != Tail::kDrop && left % global > 0 ? 1 : 0);
  // Of the steps [first, first + batches) those that are offset, modulo stride.
  const uint64_t first = position / global;
  const auto before = [&](uint64_t step) {
    return (step + slicing.stride - 1 - slicing.offset) / slicing.stride;
  };
  return before(first + batches) - before(first);
}

}  // namespace forebay::order
