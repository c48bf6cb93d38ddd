#include "order/order.h"

#include <algorithm>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::order {
namespace {

uint64_t KeyOf(const OrderSpec& spec, uint64_t purpose, uint64_t epoch) {
  return DeriveKey(DeriveKey(DeriveKey(spec.seed, purpose), spec.samples), epoch);
}

}  // namespace

EpochOrder::EpochOrder(const OrderSpec& spec, uint64_t epoch)
    : permutation_(spec.samples, KeyOf(spec, HashName("order/v1"), epoch)),
      shuffle_(spec.shuffle) {}

uint64_t EpochOrder::SampleAt(uint64_t position) const {
  return shuffle_ ? permutation_.At(position) : position;
}

uint64_t EpochOrder::PositionOf(uint64_t sample) const {
  return shuffle_ ? permutation_.Inverse(sample) : sample;
}

std::optional<BatchSlice> SliceAt(const Slicing& slicing, uint64_t samples, uint64_t position) {
  const uint64_t global = slicing.batch_size * slicing.world_size;
  if (position >= samples) return std::nullopt;
  const uint64_t left = samples - position;
  if (left >= global) {
    return BatchSlice{position, global, slicing.rank * slicing.batch_size, slicing.batch_size};
  }
  if (slicing.drop_last) return std::nullopt;
  const uint64_t rows = (left + slicing.world_size - 1) / slicing.world_size;
  return BatchSlice{position, left, slicing.rank * rows, rows};
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
  return slicing.drop_last ? left / global : (left + global - 1) / global;
}

uint64_t SubstituteFor(const OrderSpec& spec, uint64_t epoch, uint64_t position, uint64_t attempt) {
  Random random(
      DeriveKey(DeriveKey(KeyOf(spec, HashName("substitute/v1"), epoch), position), attempt));
  return random.NextBelow(spec.samples);
}

}  // namespace forebay::order
