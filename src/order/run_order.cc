#include "order/run_order.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::order {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

// A source's order does not depend on which others there are, nor on their order.
uint64_t SeedOf(uint64_t seed, const std::string& name) {
  return name.empty() ? seed : DeriveKey(DeriveKey(seed, HashName("source/v1")), HashName(name));
}

Status CheckNames(const RunSpec& spec) {
  if (spec.sources.empty()) return Bad("a run without a source");
  std::set<std::string> names;
  for (const RunSource& source : spec.sources) {
    if (source.name.empty() && spec.sources.size() > 1) return Bad("a source without a name");
    if (!names.insert(source.name).second) {
      return Bad(fmt::format("two sources are named '{}'", source.name));
    }
  }
  return {};
}

}  // namespace

Result<RunOrder> RunOrder::Make(const RunSpec& spec) {
  FB_RETURN_IF_ERROR(CheckNames(spec));
  RunOrder order;
  uint64_t all = 0;
  for (const RunSource& source : spec.sources) {
    Result<SourceStream> stream =
        SourceStream::Make({SeedOf(spec.seed, source.name), source.shuffle, source.sizes});
    if (!stream.ok()) {
      return std::move(stream).status().WithContext(fmt::format("source '{}'", source.name));
    }
    order.streams_.push_back(*std::move(stream));
    all += source.sizes.front().samples;
  }
  order.epoch_samples_ = spec.epoch_samples;
  if (spec.sources.size() > 1) {
    if (order.epoch_samples_ == 0) order.epoch_samples_ = all;
    FB_ASSIGN_OR_RETURN(order.mixture_,
                        Mixture::Make({spec.seed, spec.mixture_block, spec.mixture}));
    if (order.mixture_->sources() != spec.sources.size()) {
      return Bad(
          fmt::format("{} weights for {} sources", order.mixture_->sources(), spec.sources.size()));
    }
  }
  if (order.epoch_samples_ >> 40 != 0) return Bad("an epoch of over 2^40 samples");
  return order;
}

uint64_t RunOrder::EpochSamples(uint64_t epoch) const {
  return natural() ? streams_.front().SamplesIn(epoch) : epoch_samples_;
}

RunOrder::Number RunOrder::NumberAt(uint64_t epoch, uint64_t position) {
  if (natural()) return {0, streams_.front().IndexOf(epoch, position)};
  if (!mixture_) return {0, Global(epoch, position)};
  const Mixture::Pick pick = mixture_->At(Global(epoch, position));
  return {pick.source, pick.index};
}

Place RunOrder::At(uint64_t epoch, uint64_t position) {
  FB_ASSERT(position < EpochSamples(epoch));
  if (natural()) return {0, streams_.front().Order(epoch).SampleAt(position), epoch};
  const Number number = NumberAt(epoch, position);
  SourceStream& stream = streams_[number.source];
  const SourceStream::At at = stream.Locate(number.index);
  return {number.source, stream.Order(at.epoch).SampleAt(at.position), at.epoch};
}

void RunOrder::AtEach(uint64_t epoch, uint64_t first, std::span<Place> places) {
  if (!natural()) {
    for (size_t i = 0; i < places.size(); ++i) places[i] = At(epoch, first + i);
    return;
  }
  samples_.resize(places.size());
  streams_.front().Order(epoch).SamplesAt(first, samples_);
  for (size_t i = 0; i < places.size(); ++i) places[i] = {0, samples_[i], epoch};
}

std::optional<uint64_t> RunOrder::GlobalOf(uint32_t source, uint64_t index) {
  return mixture_ ? mixture_->PositionOf(source, index) : std::optional(index);
}

std::vector<uint64_t> RunOrder::Find(uint64_t epoch, uint32_t source, uint64_t sample) {
  FB_ASSERT(source < streams_.size());
  SourceStream& stream = streams_[source];
  if (natural()) {
    if (sample >= stream.SamplesIn(epoch)) return {};
    return {stream.Order(epoch).PositionOf(sample)};
  }
  // The source's numbers that this epoch of the run takes.
  const uint64_t first = CountsBefore(epoch, 0)[source];
  const uint64_t end = CountsBefore(epoch + 1, 0)[source];
  std::vector<uint64_t> found;
  if (first == end) return found;
  const uint64_t last_epoch = stream.Locate(end - 1).epoch;
  for (uint64_t e = stream.Locate(first).epoch; e <= last_epoch; ++e) {
    if (sample >= stream.SamplesIn(e)) continue;
    const uint64_t index = stream.IndexOf(e, stream.Order(e).PositionOf(sample));
    if (index < first || index >= end) continue;
    if (const auto global = GlobalOf(source, index)) found.push_back(*global - Global(epoch, 0));
  }
  return found;
}

uint64_t RunOrder::NextUse(uint64_t epoch, uint64_t position) {
  const Place place = At(epoch, position);
  SourceStream& stream = streams_[place.source];
  const uint64_t next = place.source_epoch + 1;
  const uint64_t index = stream.IndexOf(next, stream.Order(next).PositionOf(place.sample));
  return GlobalOf(place.source, index).value_or(~uint64_t{0});
}

Place RunOrder::SubstituteFor(const Place& bad, uint64_t epoch, uint64_t position,
                              uint64_t attempt) {
  const uint64_t at = natural() ? position : Global(epoch, position);
  Place place = bad;
  place.sample = order::SubstituteFor(streams_[bad.source].OrderOf(bad.source_epoch),
                                      bad.source_epoch, at, attempt);
  return place;
}

std::vector<uint64_t> RunOrder::CountsBefore(uint64_t epoch, uint64_t position) {
  if (natural()) return {streams_.front().IndexOf(epoch, position)};
  if (mixture_) return mixture_->CountsBefore(Global(epoch, position));
  return {Global(epoch, position)};
}

std::vector<uint64_t> RunOrder::EpochsToCome(uint64_t epoch, uint64_t position) {
  std::vector<uint64_t> epochs;
  const std::vector<uint64_t> counts = CountsBefore(epoch, position);
  for (size_t i = 0; i < streams_.size(); ++i) {
    const SourceStream::At at = streams_[i].Locate(counts[i]);
    epochs.push_back(at.position == 0 ? at.epoch : at.epoch + 1);
  }
  return epochs;
}

}  // namespace forebay::order
