#include "order/epoch_order.h"

#include "base/assert.h"
#include "base/random.h"

namespace forebay::order {
namespace {

using How = std::variant<Sequential, Permutation, BlockOrder>;

uint64_t KeyOf(const OrderSpec& spec, uint64_t purpose, uint64_t epoch) {
  return DeriveKey(DeriveKey(DeriveKey(spec.seed, purpose), spec.samples), epoch);
}

How MakeHow(const OrderSpec& spec, uint64_t epoch) {
  if (std::holds_alternative<Sequential>(spec.shuffle)) return Sequential{};
  if (std::holds_alternative<GlobalShuffle>(spec.shuffle)) {
    return Permutation(spec.samples, KeyOf(spec, HashName("order/v1"), epoch));
  }
  FB_ASSERT(spec.blocks != nullptr && spec.blocks->samples() == spec.samples);
  return BlockOrder(spec.blocks, std::get<BlockShuffle>(spec.shuffle),
                    KeyOf(spec, HashName("blocks/v1"), epoch));
}

}  // namespace

EpochOrder::EpochOrder(const OrderSpec& spec, uint64_t epoch)
    : samples_(spec.samples), how_(MakeHow(spec, epoch)) {}

uint64_t EpochOrder::SampleAt(uint64_t position) {
  FB_ASSERT(position < samples_);
  if (auto* global = std::get_if<Permutation>(&how_)) return global->At(position);
  if (auto* blocks = std::get_if<BlockOrder>(&how_)) return blocks->At(position);
  return position;
}

void EpochOrder::SamplesAt(uint64_t first, std::span<uint64_t> samples) {
  FB_ASSERT(first <= samples_ && samples.size() <= samples_ - first);
  if (auto* blocks = std::get_if<BlockOrder>(&how_)) {
    blocks->AtEach(first, samples);
    return;
  }
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = first + i;
  if (auto* global = std::get_if<Permutation>(&how_)) global->AtEach(samples);
}

uint64_t EpochOrder::PositionOf(uint64_t sample) {
  FB_ASSERT(sample < samples_);
  if (auto* global = std::get_if<Permutation>(&how_)) return global->Inverse(sample);
  if (auto* blocks = std::get_if<BlockOrder>(&how_)) return blocks->PositionOf(sample);
  return sample;
}

uint64_t EpochOrder::WindowOf(uint64_t position) const {
  const auto* blocks = std::get_if<BlockOrder>(&how_);
  return blocks != nullptr ? blocks->WindowOf(position) : 0;
}

uint64_t SubstituteFor(const OrderSpec& spec, uint64_t epoch, uint64_t position, uint64_t attempt) {
  Random random(
      DeriveKey(DeriveKey(KeyOf(spec, HashName("substitute/v1"), epoch), position), attempt));
  return random.NextBelow(spec.samples);
}

}  // namespace forebay::order
