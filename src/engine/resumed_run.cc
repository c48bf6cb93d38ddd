#include "engine/resumed_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/run_spec.h"

namespace forebay::engine {
namespace {

Result<std::vector<order::SourceSize>> SizesIn(const OpenedSource& source,
                                               const SourceState& state) {
  if (state.sizes.empty()) return SizesOf(source, {{0, state.samples}});
  return SizesOf(source, state.sizes);
}

}  // namespace

Result<std::vector<order::SourceSize>> SizesOf(const OpenedSource& source,
                                               const std::vector<SourceGrowth>& sizes) {
  std::vector<order::SourceSize> result;
  for (const SourceGrowth& size : sizes) {
    // Only what the data set was at some time.
    if (std::ranges::find(source.generations, size.samples, &catalog::Generation::samples) ==
        source.generations.end()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("the source '{}' is to have had {} samples from epoch {} on, which "
                                "it never had",
                                source.name, size.samples, size.from_epoch));
    }
    result.push_back({size.from_epoch, size.samples, BlocksOf(source, size.samples)});
  }
  return result;
}

Result<order::RunSpec> SpecOfState(const std::vector<OpenedSource>& sources,
                                   const OrderOptions& options, const order::RunSpec& mine,
                                   const LoaderState& state) {
  order::RunSpec spec = mine;
  spec.mixture.clear();
  for (const MixtureWeights& piece : state.mixture) {
    spec.mixture.push_back({piece.start, piece.weights});
  }
  uint64_t first_samples = 0;
  for (size_t i = 0; i < std::min(sources.size(), state.sources.size()); ++i) {
    Result<std::vector<order::SourceSize>> sizes = SizesIn(sources[i], state.sources[i]);
    // One that never was this source is told by its hash first.
    if (sizes.ok()) spec.sources[i].sizes = *std::move(sizes);
    first_samples += spec.sources[i].sizes.front().samples;
  }
  // An epoch of a mixture stays as long as it was when the run began.
  if (sources.size() > 1 && options.epoch_samples == 0) spec.epoch_samples = first_samples;
  FB_RETURN_IF_ERROR(CheckSameRun(state, DescribeRun(sources, options, spec), sources));
  for (size_t i = 0; i < sources.size(); ++i) {
    FB_RETURN_IF_ERROR(SizesIn(sources[i], state.sources[i]).status());
  }
  return spec;
}

Result<std::set<uint64_t>> ReplacedOf(const LoaderState& state,
                                      const std::vector<OpenedSource>& sources,
                                      const RunPlan& plan) {
  std::set<uint64_t> samples;
  for (const auto& [source, sample] : state.replaced) {
    const auto number = static_cast<size_t>(source);
    if (source < 0 || number >= sources.size() || sample < 0 ||
        static_cast<uint64_t>(sample) >= sources[number].dataset->sample_count()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("the state has replaced sample {} of source {}, which is not there",
                                sample, source));
    }
    samples.insert(plan.first_of_source[number] + static_cast<uint64_t>(sample));
  }
  return samples;
}

std::vector<std::pair<int64_t, int64_t>> InSources(const std::set<uint64_t>& samples,
                                                   const RunPlan& plan) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const uint64_t sample : samples) {
    const auto after = std::ranges::upper_bound(plan.first_of_source, sample);
    const auto source = after - plan.first_of_source.begin() - 1;
    const uint64_t first = plan.first_of_source[static_cast<size_t>(source)];
    pairs.emplace_back(source, static_cast<int64_t>(sample - first));
  }
  return pairs;
}

void GrowSources(const std::vector<OpenedSource>& sources, const LoaderState& state,
                 order::RunOrder& order, order::RunSpec* spec) {
  const std::vector<uint64_t> next =
      order.EpochsToCome(static_cast<uint64_t>(state.epoch), static_cast<uint64_t>(state.position));
  for (size_t i = 0; i < sources.size(); ++i) {
    std::vector<order::SourceSize>& sizes = spec->sources[i].sizes;
    const uint64_t now = sources[i].generations.back().samples;
    if (sizes.back().samples == now) continue;
    // One that was to come then is not begun either.
    std::erase_if(sizes, [&](const order::SourceSize& size) { return size.from_epoch >= next[i]; });
    sizes.push_back({next[i], now, BlocksOf(sources[i], now)});
  }
}

}  // namespace forebay::engine
