#include "order/source_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::order {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

}  // namespace

Result<SourceStream> SourceStream::Make(SourceSpec spec) {
  if (spec.sizes.empty() || spec.sizes.front().from_epoch != 0) {
    return Bad("a source's sizes start at epoch 0");
  }
  SourceStream stream(std::move(spec));
  const auto& sizes = stream.spec_.sizes;
  Wide first = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].samples == 0) return Bad("a source without samples");
    if (std::holds_alternative<BlockShuffle>(stream.spec_.shuffle) &&
        (sizes[i].blocks == nullptr || sizes[i].blocks->samples() != sizes[i].samples)) {
      return Bad("a block shuffle without a block table of the source's size");
    }
    if (i > 0) {
      if (sizes[i].from_epoch <= sizes[i - 1].from_epoch ||
          sizes[i].samples < sizes[i - 1].samples) {
        return Bad(fmt::format("a source of {} samples from epoch {} on cannot have {} from {} on",
                               sizes[i - 1].samples, sizes[i - 1].from_epoch, sizes[i].samples,
                               sizes[i].from_epoch));
      }
      first +=
          static_cast<Wide>(sizes[i].from_epoch - sizes[i - 1].from_epoch) * sizes[i - 1].samples;
      if (first >> 63 != 0) return Bad("a source's stream of over 2^63 samples");
    }
    stream.first_.push_back(static_cast<uint64_t>(first));
  }
  return stream;
}

size_t SourceStream::SizeNumber(uint64_t epoch) const {
  const auto after = std::ranges::upper_bound(spec_.sizes, epoch, {}, &SourceSize::from_epoch);
  return static_cast<size_t>(after - spec_.sizes.begin()) - 1;
}

SourceStream::At SourceStream::Locate(uint64_t index) {
  if (index - located_first_ < located_samples_) return {located_epoch_, index - located_first_};
  const auto after = std::ranges::upper_bound(first_, index);
  const auto i = static_cast<size_t>(after - first_.begin()) - 1;
  const uint64_t samples = spec_.sizes[i].samples;
  const uint64_t epochs = (index - first_[i]) / samples;
  located_epoch_ = spec_.sizes[i].from_epoch + epochs;
  located_first_ = first_[i] + epochs * samples;
  located_samples_ = samples;
  return {located_epoch_, index - located_first_};
}

uint64_t SourceStream::IndexOf(uint64_t epoch, uint64_t position) const {
  const size_t i = SizeNumber(epoch);
  return first_[i] + (epoch - spec_.sizes[i].from_epoch) * spec_.sizes[i].samples + position;
}

OrderSpec SourceStream::OrderOf(uint64_t epoch) const {
  const SourceSize& size = SizeIn(epoch);
  return {size.samples, spec_.seed, spec_.shuffle, size.blocks};
}

EpochOrder& SourceStream::Order(uint64_t epoch) {
  Kept* oldest = &kept_[0];
  for (Kept& kept : kept_) {
    if (kept.order && kept.epoch == epoch) {
      kept.used = ++uses_;
      return *kept.order;
    }
    if (kept.used < oldest->used) oldest = &kept;
  }
  oldest->order.emplace(OrderOf(epoch), epoch);
  oldest->epoch = epoch;
  oldest->used = ++uses_;
  return *oldest->order;
}

}  // namespace forebay::order
