#include "engine/run_spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/random.h"

namespace forebay {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status AtLeastOne(const char* name, int64_t value) {
  return value > 0 ? Status() : Bad(fmt::format("{} is {}: it must be at least 1", name, value));
}

}  // namespace

Status OrderOptions::Validate() const {
  FB_RETURN_IF_ERROR(AtLeastOne("the shuffle's window", blocks.window));
  FB_RETURN_IF_ERROR(AtLeastOne("the shuffle's streams", blocks.streams));
  FB_RETURN_IF_ERROR(AtLeastOne("the shuffle's run", blocks.run));
  if (blocks.streams > 1 << 20) return Bad("a shuffle of over 2^20 streams");
  if (epoch_samples < 0) return Bad("epoch_samples is negative");
  if (mixture_block < 0) return Bad("mixture_block is negative");
  return {};
}

Status PlaceOptions::Validate() const {
  FB_RETURN_IF_ERROR(AtLeastOne("batch_size", batch_size));
  FB_RETURN_IF_ERROR(AtLeastOne("world_size", world_size));
  FB_RETURN_IF_ERROR(AtLeastOne("replicas", replicas));
  if (rank < 0 || rank >= world_size) {
    return Bad(fmt::format("rank {} is not in [0, {})", rank, world_size));
  }
  if (world_size % replicas != 0) {
    return Bad(
        fmt::format("{} ranks are no whole number of groups of {} replicas", world_size, replicas));
  }
  FB_RETURN_IF_ERROR(AtLeastOne("step_stride", step_stride));
  if (step_offset < 0 || step_offset >= step_stride) {
    return Bad(fmt::format("step_offset {} is not in [0, {})", step_offset, step_stride));
  }
  if (batch_size > (int64_t{1} << 40) / world_size) return Bad("a global batch of over 2^40");
  return {};
}

}  // namespace forebay

namespace forebay::engine {
namespace {

constexpr int kStateSchema = 2;
constexpr double kWeightUnits = 1e6;
constexpr uint64_t kMixtureBlocks[] = {1000, 10'000, 100'000};
constexpr double kShareError = 0.01;

order::Shuffle ShuffleOf(const OrderOptions& options) {
  switch (options.shuffle) {
    case ShuffleKind::kNone:
    case ShuffleKind::kExternal:
      return order::Sequential{};
    case ShuffleKind::kGlobal:
      return order::GlobalShuffle{};
    case ShuffleKind::kBlocks:
      break;
  }
  return order::BlockShuffle{static_cast<uint64_t>(options.blocks.window),
                             static_cast<uint64_t>(options.blocks.streams),
                             static_cast<uint64_t>(options.blocks.run)};
}

// The smallest block in which every share is within a hundredth of what was asked for.
uint64_t FindMixtureBlock(const std::vector<uint64_t>& weights) {
  double sum = 0;
  for (const uint64_t weight : weights) sum += static_cast<double>(weight);
  for (const uint64_t block : kMixtureBlocks) {
    const auto quotas = order::QuotasOf(weights, block);
    bool good = true;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double wanted = static_cast<double>(weights[i]) / sum * static_cast<double>(block);
      good = good && std::abs(static_cast<double>(quotas[i]) - wanted) <= kShareError * wanted;
    }
    if (good) return block;
  }
  return kMixtureBlocks[std::size(kMixtureBlocks) - 1];
}

std::string OrderText(const OrderOptions& options, const order::RunSpec& order) {
  std::string text = "order/1 shuffle=";
  switch (options.shuffle) {
    case ShuffleKind::kNone:
      text += "none";
      break;
    case ShuffleKind::kGlobal:
      text += "global";
      break;
    case ShuffleKind::kExternal:
      text += "external";
      break;
    case ShuffleKind::kBlocks:
      text += fmt::format("blocks window={} streams={} run={}", options.blocks.window,
                          options.blocks.streams, options.blocks.run);
      break;
  }
  constexpr std::string_view kTails[] = {"drop", "pad", "ragged"};
  text += fmt::format(" tail={} epoch_samples={}", kTails[static_cast<size_t>(options.tail)],
                      order.epoch_samples);
  if (order.sources.size() > 1) text += fmt::format(" mixture_block={}", order.mixture_block);
  return text;
}

// What an order that is supplied leaves to others.
Status CheckExternal(const OrderOptions& order, const PlaceOptions& place, size_t sources) {
  if (sources > 1) return Bad("an external order is of one data set, not of a mixture");
  if (order.epoch_samples != 0) return Bad("an external order says itself when an epoch ends");
  if (order.tail == TailRule::kPad) return Bad("an external order says itself what pads a batch");
  if (place.world_size > 1 || place.step_stride > 1) {
    return Bad("an external order is of one rank, and of all its batches");
  }
  return {};
}

std::string HexOf(uint64_t hash) { return fmt::format("{:016x}", hash); }

// The first word in which two texts differ, as "a state's X is A, this loader's B".
Status Differs(std::string_view what, std::string_view saved, std::string_view mine) {
  return Bad(fmt::format("the state's {} is {}, this loader's is {}", what, saved, mine));
}

Status CompareTexts(std::string_view what, std::string_view saved, std::string_view mine) {
  while (saved != mine) {
    const std::string_view a = saved.substr(0, saved.find(' '));
    const std::string_view b = mine.substr(0, mine.find(' '));
    const size_t equals = a.find('=');
    if (a != b && equals != a.npos && b.substr(0, equals + 1) == a.substr(0, equals + 1)) {
      return Differs(a.substr(0, equals), a.substr(equals + 1), b.substr(equals + 1));
    }
    if (a != b) return Differs(what, saved, mine);
    saved.remove_prefix(std::min(a.size() + 1, saved.size()));
    mine.remove_prefix(std::min(b.size() + 1, mine.size()));
  }
  return {};
}

}  // namespace

order::Tail TailOf(TailRule rule) {
  switch (rule) {
    case TailRule::kDrop:
      return order::Tail::kDrop;
    case TailRule::kPad:
      return order::Tail::kPad;
    case TailRule::kRagged:
      break;
  }
  return order::Tail::kRagged;
}

Result<order::Slicing> SlicingOf(const PlaceOptions& place, TailRule tail) {
  FB_RETURN_IF_ERROR(place.Validate());
  return order::Slicing{static_cast<uint64_t>(place.batch_size),
                        static_cast<uint64_t>(place.world_size / place.replicas),
                        static_cast<uint64_t>(place.rank / place.replicas),
                        TailOf(tail),
                        static_cast<uint64_t>(place.step_stride),
                        static_cast<uint64_t>(place.step_offset)};
}

order::RunSpec SpecOfCount(uint64_t samples, uint64_t block_samples, const OrderOptions& order) {
  order::RunSpec spec;
  spec.seed = order.seed;
  spec.epoch_samples = static_cast<uint64_t>(order.epoch_samples);
  auto blocks =
      std::make_shared<const order::BlockTable>(order::BlockTable::Uniform(samples, block_samples));
  spec.sources.push_back({"", ShuffleOf(order), {{0, samples, std::move(blocks)}}});
  return spec;
}

Result<std::vector<uint64_t>> WeightsOf(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      return Bad(fmt::format("a weight of {}: it must be a number, at least 0", weight));
    }
    sum += weight;
  }
  if (!(sum > 0) || !std::isfinite(sum)) return Bad("the weights add up to no share of anything");
  std::vector<uint64_t> units;
  for (const double weight : weights) {
    units.push_back(static_cast<uint64_t>(std::llround(weight / sum * kWeightUnits)));
    if (weight > 0 && units.back() == 0) {
      return Bad(fmt::format("a weight of {} of {} is less than a millionth", weight, sum));
    }
  }
  return units;
}

Result<RunPlan> PlanRun(const std::vector<OpenedSource>& sources,
                        const std::vector<SourceOptions>& options, const OrderOptions& order,
                        const PlaceOptions& place) {
  FB_RETURN_IF_ERROR(order.Validate());
  RunPlan plan;
  FB_ASSIGN_OR_RETURN(plan.slicing, SlicingOf(place, order.tail));
  plan.order.seed = order.seed;
  plan.order.epoch_samples = static_cast<uint64_t>(order.epoch_samples);
  uint64_t first = 0;
  std::vector<double> weights;
  for (size_t i = 0; i < sources.size(); ++i) {
    order::SourceSize size{0, sources[i].dataset->sample_count()};
    size.blocks = BlocksOf(sources[i], size.samples);
    plan.order.sources.push_back({sources[i].name, ShuffleOf(order), {size}});
    plan.first_of_source.push_back(first);
    first += size.samples;
    weights.push_back(options[i].weight);
  }
  if (sources.size() > 1) {
    FB_ASSIGN_OR_RETURN(auto units, WeightsOf(weights));
    plan.order.mixture_block = order.mixture_block > 0 ? static_cast<uint64_t>(order.mixture_block)
                                                       : FindMixtureBlock(units);
    plan.order.mixture.push_back({0, std::move(units)});
    if (plan.order.epoch_samples == 0) plan.order.epoch_samples = first;
  }
  FB_ASSIGN_OR_RETURN(const order::RunOrder made, order::RunOrder::Make(plan.order));
  if (order.shuffle == ShuffleKind::kExternal) {
    plan.external = true;
    FB_RETURN_IF_ERROR(CheckExternal(order, place, sources.size()));
    return plan;
  }
  order::Slicing all_steps = plan.slicing;
  all_steps.stride = 1;
  all_steps.offset = 0;
  if (order::BatchesFrom(all_steps, made.EpochSamples(0), 0) == 0) {
    return Bad(
        fmt::format("{} samples do not fill one batch of {} on {} ranks; "
                    "drop_last=False would pad it",
                    made.EpochSamples(0), place.batch_size, plan.slicing.world_size));
  }
  return plan;
}

namespace {

std::string CatalogHashOf(const std::vector<SourceState>& sources) {
  if (sources.size() == 1) return sources[0].catalog_hash;
  std::string catalogs;
  for (const SourceState& source : sources) catalogs += source.catalog_hash + "\n";
  return HexOf(HashName(catalogs));
}

}  // namespace

LoaderState DescribeRun(const std::vector<OpenedSource>& sources, const OrderOptions& options,
                        const order::RunSpec& order) {
  LoaderState state;
  state.schema = kStateSchema;
  state.seed = options.seed;
  state.spec = OrderText(options, order);
  uint64_t hash = HashName(state.spec);
  for (size_t i = 0; i < sources.size(); ++i) {
    const OpenedSource& source = sources[i];
    const std::vector<order::SourceSize>& sizes = order.sources[i].sizes;
    state.sources.push_back(
        {source.name, source.spec, source.catalog_hash, sizes.back().samples, {}});
    for (const order::SourceSize& size : sizes) {
      if (sizes.size() == 1) break;
      state.sources.back().sizes.push_back({size.from_epoch, size.samples});
    }
    hash = DeriveKey(DeriveKey(hash, HashName(source.name)), HashName(source.spec));
  }
  state.spec_hash = HexOf(hash);
  state.catalog_hash = CatalogHashOf(state.sources);
  return state;
}

Status CheckSameRun(const LoaderState& state, const LoaderState& mine,
                    const std::vector<OpenedSource>& sources) {
  if (state.schema != mine.schema) {
    return Differs("schema", fmt::format("{}", state.schema), fmt::format("{}", mine.schema));
  }
  if (state.sources.size() != mine.sources.size()) {
    return Differs("number of sources", fmt::format("{}", state.sources.size()),
                   fmt::format("{}", mine.sources.size()));
  }
  for (size_t i = 0; i < mine.sources.size(); ++i) {
    const SourceState& saved = state.sources[i];
    const SourceState& own = mine.sources[i];
    const auto in_source = [&](const char* field) {
      return own.name.empty() ? std::string(field) : fmt::format("{} of '{}'", field, own.name);
    };
    if (saved.name != own.name) return Differs("source's name", saved.name, own.name);
    const auto& generations = sources[i].generations;
    const auto then =
        std::ranges::find(generations, saved.catalog_hash, &catalog::Generation::content_hash);
    if (then == generations.end()) {
      return Differs(in_source("catalog_hash"), saved.catalog_hash, own.catalog_hash);
    }
    FB_RETURN_IF_ERROR(CompareTexts(in_source("spec"), saved.spec, own.spec));
    if (saved.samples != then->samples) {
      return Differs(in_source("samples"), fmt::format("{}", saved.samples),
                     fmt::format("{}", then->samples));
    }
  }
  if (const std::string all = CatalogHashOf(state.sources); state.catalog_hash != all) {
    return Differs("catalog_hash", state.catalog_hash, all);
  }
  FB_RETURN_IF_ERROR(CompareTexts("spec", state.spec, mine.spec));
  if (state.spec_hash != mine.spec_hash) {
    return Differs("spec_hash", state.spec_hash, mine.spec_hash);
  }
  if (state.seed != mine.seed) {
    return Differs("seed", fmt::format("{}", state.seed), fmt::format("{}", mine.seed));
  }
  return {};
}

}  // namespace forebay::engine
