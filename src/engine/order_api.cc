#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/random.h"
#include "engine/opened_source.h"
#include "engine/resumed_run.h"
#include "engine/run_spec.h"
#include "forebay/order.h"
#include "order/order_digest.h"
#include "order/run_order.h"

namespace forebay {
namespace {

constexpr int64_t kEpochMost = (int64_t{1} << 31) - 1;
constexpr uint64_t kPricedSamples = 200'000;
constexpr uint64_t kPricedBatches = 200;
constexpr uint64_t kSlices = 100;
constexpr size_t kViolationsShown = 10;
constexpr uint64_t kVerifiedMost = uint64_t{1} << 32;  // 16 GiB of counts
constexpr uint64_t kFoundMost = uint64_t{1} << 24;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status CheckEpoch(int64_t epoch) {
  return epoch >= 0 && epoch <= kEpochMost ? Status()
                                           : Bad(fmt::format("epoch {} is no epoch", epoch));
}

class RunningOrder : public Order {
 public:
  Status Open(const std::vector<SourceOptions>& sources, const OrderOptions& options,
              const StoreOptions& store, const std::vector<Growth>& growth) {
    if (!growth.empty() && growth.size() != sources.size()) {
      return Bad(fmt::format("{} sources, and the growth of {}", sources.size(), growth.size()));
    }
    FB_ASSIGN_OR_RETURN(sources_, engine::OpenSources(sources, store, false));
    FB_ASSIGN_OR_RETURN(engine::RunPlan plan,
                        engine::PlanRun(sources_, sources, options, PlaceOptions{}));
    for (size_t i = 0; i < growth.size(); ++i) {
      if (growth[i].empty()) continue;
      FB_ASSIGN_OR_RETURN(plan.order.sources[i].sizes, engine::SizesOf(sources_[i], growth[i]));
    }
    return Set(std::move(plan), options);
  }
  Status OpenCount(uint64_t samples, uint64_t block_samples, const OrderOptions& options,
                   const Growth& growth) {
    FB_RETURN_IF_ERROR(options.Validate());
    engine::RunPlan plan;
    plan.order = engine::SpecOfCount(samples, block_samples, options);
    plan.slicing.tail = engine::TailOf(options.tail);
    if (!growth.empty()) plan.order.sources[0].sizes.clear();
    for (const SourceGrowth& size : growth) {
      plan.order.sources[0].sizes.push_back(
          {size.from_epoch, size.samples,
           std::make_shared<const order::BlockTable>(
               order::BlockTable::Uniform(size.samples, block_samples))});
    }
    return Set(std::move(plan), options);
  }

  int64_t EpochSamples(int64_t epoch) const override {
    return static_cast<int64_t>(order_->EpochSamples(static_cast<uint64_t>(epoch)));
  }
  const std::vector<std::string>& source_names() const override { return names_; }
  int64_t SourceSamples(int32_t source) const override {
    return static_cast<int64_t>(SizeOf(static_cast<size_t>(source)));
  }
  std::string Describe(int32_t source, int64_t sample) const override {
    if (sources_.empty()) return "";
    return sources_[static_cast<size_t>(source)].dataset->DescribeSample(
        static_cast<uint64_t>(sample));
  }
  Result<std::vector<OrderEntry>> Batch(const PlaceOptions& place, int64_t epoch,
                                        int64_t step) override;
  Result<std::vector<int64_t>> Find(int64_t epoch, int32_t source, int64_t sample) override;
  Result<std::string> Digest(int64_t epochs, int64_t position) override;
  Result<OrderProof> Verify(const std::vector<OrderStretch>& chain, int64_t epoch) override;
  Result<OrderPrice> Price(const PlaceOptions& place, int64_t epoch) override;

 private:
  struct Walk;
  Status Set(engine::RunPlan plan, const OrderOptions& options) {
    if (options.shuffle == ShuffleKind::kExternal) {
      return Bad("an external order is known to its loader alone");
    }
    plan_ = std::move(plan);
    options_ = options;
    for (const order::RunSource& source : plan_.order.sources) names_.push_back(source.name);
    FB_ASSIGN_OR_RETURN(order_, order::RunOrder::Make(plan_.order));
    return {};
  }
  // At its largest: a source never shrinks.
  uint64_t SizeOf(size_t source) const { return plan_.order.sources[source].sizes.back().samples; }
  OrderEntry EntryAt(uint64_t epoch, const order::Row& row) {
    const order::Place place = order_->At(epoch, row.position);
    return {static_cast<int64_t>(row.position), static_cast<int32_t>(place.source),
            static_cast<int64_t>(place.sample), row.pad};
  }
  void WalkBatch(Walk& walk, const order::Slicing& slicing);
  void CheckCounts(const Walk& walk, OrderProof* proof);
  double Distance(order::EpochOrder& order, uint64_t global) const;

  std::vector<engine::OpenedSource> sources_;
  engine::RunPlan plan_;
  OrderOptions options_;
  std::vector<std::string> names_;
  std::optional<order::RunOrder> order_;
};

// Epochs of a source in which it had so many samples: those of which all samples come, and those
// that are cut off at either end.
struct Stretch {
  uint64_t samples = 0;
  uint64_t whole_epochs = 0;
  uint64_t cut_epochs = 0;
};

// Of the source's stream, whose epochs lie one after the other: what [begin, end) covers.
std::vector<Stretch> StretchesOf(const std::vector<order::SourceSize>& sizes, uint64_t begin,
                                 uint64_t end) {
  std::vector<Stretch> stretches;
  uint64_t first = 0;  // of the stream, at these epochs' beginning
  for (size_t i = 0; i < sizes.size() && first < end; ++i) {
    const uint64_t samples = sizes[i].samples;
    const bool last = i + 1 == sizes.size();
    const uint64_t behind =
        last ? UINT64_MAX : first + (sizes[i + 1].from_epoch - sizes[i].from_epoch) * samples;
    const uint64_t from = std::max(begin, first) - first;
    const uint64_t to = std::min(end, behind) - first;
    if (from < to) {
      const uint64_t first_whole = (from + samples - 1) / samples;
      const uint64_t end_whole = to / samples;
      Stretch stretch{.samples = samples};
      if (first_whole <= end_whole) {
        stretch.whole_epochs = end_whole - first_whole;
        stretch.cut_epochs = (from % samples > 0 ? 1 : 0) + (to % samples > 0 ? 1 : 0);
      } else {
        stretch.cut_epochs = 1;
      }
      stretches.push_back(stretch);
    }
    first = behind;
  }
  return stretches;
}

// Where a proof is.
struct RunningOrder::Walk {
  uint64_t epoch = 0;
  uint64_t samples = 0;
  uint64_t position = 0;
  std::vector<bool> seen;                    // per position
  std::vector<std::vector<uint32_t>> times;  // per source and sample: how often it came
  OrderProof proof;

  void Violation(std::string text) {
    if (proof.violations.size() < kViolationsShown) proof.violations.push_back(std::move(text));
  }
};

Result<std::vector<OrderEntry>> RunningOrder::Batch(const PlaceOptions& place, int64_t epoch,
                                                    int64_t step) {
  FB_RETURN_IF_ERROR(CheckEpoch(epoch));
  FB_ASSIGN_OR_RETURN(const order::Slicing slicing, engine::SlicingOf(place, options_.tail));
  if (step < 0) return Bad(fmt::format("step {} is negative", step));
  const auto e = static_cast<uint64_t>(epoch);
  const uint64_t samples = order_->EpochSamples(e);
  const uint64_t global = slicing.batch_size * slicing.world_size;
  std::vector<OrderEntry> entries;
  if (static_cast<uint64_t>(step) > samples / global) return entries;
  const auto slice = order::SliceAt(slicing, samples, static_cast<uint64_t>(step) * global);
  if (!slice) return entries;
  for (uint64_t i = 0; i < slice->rows; ++i) {
    entries.push_back(EntryAt(e, order::RowOf(*slice, samples, i)));
  }
  return entries;
}

Result<std::vector<int64_t>> RunningOrder::Find(int64_t epoch, int32_t source, int64_t sample) {
  FB_RETURN_IF_ERROR(CheckEpoch(epoch));
  if (source < 0 || static_cast<size_t>(source) >= names_.size()) {
    return Bad(fmt::format("source {} is not in [0, {})", source, names_.size()));
  }
  if (sample < 0 || sample >= SourceSamples(source)) {
    return Bad(fmt::format("sample {} is not in [0, {})", sample, SourceSamples(source)));
  }
  const uint64_t least = plan_.order.sources[static_cast<size_t>(source)].sizes.front().samples;
  if (order_->EpochSamples(static_cast<uint64_t>(epoch)) / least > kFoundMost) {
    return Bad(fmt::format("an epoch of {} samples: one of {} comes over {} times",
                           EpochSamples(epoch), least, kFoundMost));
  }
  const auto found = order_->Find(static_cast<uint64_t>(epoch), static_cast<uint32_t>(source),
                                  static_cast<uint64_t>(sample));
  return std::vector<int64_t>(found.begin(), found.end());
}

Result<std::string> RunningOrder::Digest(int64_t epochs, int64_t position) {
  FB_RETURN_IF_ERROR(CheckEpoch(epochs));
  if (position < 0 || position > EpochSamples(epochs)) {
    return Bad(fmt::format("position {} is not in [0, {}]", position, EpochSamples(epochs)));
  }
  const auto end = static_cast<uint64_t>(epochs);
  order::OrderDigest digest;
  for (uint64_t epoch = 0; epoch <= end; ++epoch) {
    const uint64_t samples =
        epoch == end ? static_cast<uint64_t>(position) : order_->EpochSamples(epoch);
    for (uint64_t i = 0; i < samples; ++i) digest.Add(order_->At(epoch, i));
  }
  return digest.ToHex();
}

// One batch of every rank.
void RunningOrder::WalkBatch(Walk& walk, const order::Slicing& slicing) {
  uint64_t advance = 0;
  for (uint64_t rank = 0; rank < slicing.world_size; ++rank) {
    order::Slicing of_rank = slicing;
    of_rank.rank = rank;
    const auto slice = order::SliceAt(of_rank, walk.samples, walk.position);
    if (!slice) {
      walk.Violation(fmt::format("rank {} has no batch at position {}", rank, walk.position));
      continue;
    }
    advance = slice->global_samples;
    for (uint64_t i = 0; i < slice->rows; ++i) {
      const order::Row row = order::RowOf(*slice, walk.samples, i);
      ++walk.proof.delivered;
      if (row.pad) {
        ++walk.proof.padded;
        continue;
      }
      if (walk.seen[row.position]) {
        walk.Violation(fmt::format("position {} comes twice", row.position));
      }
      walk.seen[row.position] = true;
      const order::Place place = order_->At(walk.epoch, row.position);
      ++walk.times[place.source][place.sample];
    }
  }
  ++walk.proof.batches;
  walk.position += std::max<uint64_t>(advance, 1);
}

// Each source's samples come as often as its share of the epoch says, give or take one; without
// what the tail drops.
void RunningOrder::CheckCounts(const Walk& walk, OrderProof* proof) {
  const auto before = order_->CountsBefore(walk.epoch, 0);
  const auto after = order_->CountsBefore(walk.epoch, walk.position);
  for (size_t source = 0; source < walk.times.size(); ++source) {
    const uint64_t share = after[source] - before[source];
    const std::vector<Stretch> stretches =
        StretchesOf(plan_.order.sources[source].sizes, before[source], after[source]);
    uint64_t sum = 0;
    for (uint64_t sample = 0; sample < walk.times[source].size(); ++sample) {
      uint64_t least = 0;
      uint64_t most = 0;
      for (const Stretch& stretch : stretches) {
        if (sample >= stretch.samples) continue;
        least += stretch.whole_epochs;
        most += stretch.whole_epochs + stretch.cut_epochs;
      }
      const uint64_t times = walk.times[source][sample];
      sum += times;
      if (times < least || times > most) {
        proof->violations.push_back(
            fmt::format("sample {} of source {} comes {} times", sample, source, times));
        if (proof->violations.size() >= kViolationsShown) return;
      }
    }
    if (sum != share) {
      proof->violations.push_back(
          fmt::format("source {} gives {} samples in place of {}", source, sum, share));
    }
  }
}

Result<OrderProof> RunningOrder::Verify(const std::vector<OrderStretch>& chain, int64_t epoch) {
  FB_RETURN_IF_ERROR(CheckEpoch(epoch));
  if (chain.empty()) return Bad("no stretch to verify");
  Walk walk;
  walk.epoch = static_cast<uint64_t>(epoch);
  walk.samples = order_->EpochSamples(walk.epoch);
  walk.proof.samples = static_cast<int64_t>(walk.samples);
  uint64_t most = walk.samples;
  for (size_t i = 0; i < names_.size(); ++i) most = std::max(most, SizeOf(i));
  if (most > kVerifiedMost) {
    return Bad(fmt::format("{} samples: at most {} can be gone through", most, kVerifiedMost));
  }
  walk.seen.resize(walk.samples);
  for (size_t i = 0; i < names_.size(); ++i) walk.times.emplace_back(SizeOf(i));
  for (const OrderStretch& stretch : chain) {
    FB_ASSIGN_OR_RETURN(const order::Slicing slicing,
                        engine::SlicingOf(stretch.place, options_.tail));
    for (int64_t batch = 0; stretch.batches == 0 || batch < stretch.batches; ++batch) {
      if (!order::SliceAt(slicing, walk.samples, walk.position)) break;
      WalkBatch(walk, slicing);
    }
  }
  walk.position = std::min(walk.position, walk.samples);
  OrderProof proof = std::move(walk.proof);
  const auto come = static_cast<int64_t>(std::ranges::count(walk.seen, true));
  proof.dropped = proof.samples - come;
  if (come != static_cast<int64_t>(walk.position)) {
    proof.violations.push_back(fmt::format("{} positions came before {}", come, walk.position));
  }
  if (proof.dropped > 0 && options_.tail != TailRule::kDrop && chain.back().batches == 0) {
    proof.violations.push_back(fmt::format("{} positions never came", proof.dropped));
  }
  CheckCounts(walk, &proof);
  order::OrderDigest digest;
  for (uint64_t i = 0; i < walk.position; ++i) digest.Add(order_->At(walk.epoch, i));
  proof.digest = digest.ToHex();
  return proof;
}

double RunningOrder::Distance(order::EpochOrder& order, uint64_t global) const {
  const uint64_t samples = order.samples();
  const uint64_t batches = std::min(kPricedBatches, samples / global);
  const uint64_t slices = std::min(kSlices, samples);
  double sum = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    // Spread over the epoch.
    const uint64_t first = batch * (samples / global / std::max<uint64_t>(batches, 1)) * global;
    std::array<uint64_t, kSlices> histogram{};
    for (uint64_t i = 0; i < global; ++i) {
      const Wide scaled = static_cast<Wide>(order.SampleAt(first + i)) * slices / samples;
      ++histogram[static_cast<size_t>(scaled)];
    }
    double distance = 0;
    for (uint64_t i = 0; i < slices; ++i) {
      distance += std::abs(static_cast<double>(histogram[i]) / static_cast<double>(global) -
                           1.0 / static_cast<double>(slices));
    }
    sum += distance / 2;
  }
  return batches > 0 ? sum / static_cast<double>(batches) : 0;
}

Result<OrderPrice> RunningOrder::Price(const PlaceOptions& place, int64_t epoch) {
  FB_RETURN_IF_ERROR(CheckEpoch(epoch));
  if (names_.size() > 1) return Status(Code::kUnimplemented, "price the sources one by one");
  FB_ASSIGN_OR_RETURN(const order::Slicing slicing, engine::SlicingOf(place, options_.tail));
  const order::RunSource& source = plan_.order.sources[0];
  const auto e = static_cast<uint64_t>(epoch);
  const order::SourceSize& size =
      *std::prev(std::ranges::upper_bound(source.sizes, e, {}, &order::SourceSize::from_epoch));
  order::EpochOrder order({size.samples, plan_.order.seed, source.shuffle, size.blocks}, e);
  order::EpochOrder global_shuffle(
      {size.samples, plan_.order.seed, order::GlobalShuffle{}, nullptr}, e);
  const order::BlockTable& blocks = *size.blocks;
  const uint64_t global = slicing.batch_size * slicing.world_size;
  const bool alone = std::holds_alternative<order::GlobalShuffle>(source.shuffle);
  OrderPrice price;
  std::set<std::pair<uint64_t, uint64_t>> reads;  // (window, block)
  uint64_t read_samples = 0;
  uint64_t batches = 0;
  uint64_t blocks_in_batches = 0;
  for (uint64_t first = 0; first + global <= size.samples; first += global) {
    if (static_cast<uint64_t>(price.samples) >= kPricedSamples) break;
    std::set<uint64_t> in_batch;
    for (uint64_t i = 0; i < global && batches < kPricedBatches; ++i) {
      in_batch.insert(blocks.BlockOf(order.SampleAt(first + i)));
    }
    if (batches < kPricedBatches) {
      ++batches;
      blocks_in_batches += in_batch.size();
    }
    for (uint64_t i = 0; i < slicing.batch_size; ++i) {
      const uint64_t position = first + slicing.rank * slicing.batch_size + i;
      const uint64_t block = blocks.BlockOf(order.SampleAt(position));
      ++price.samples;
      if (alone || reads.emplace(order.WindowOf(position), block).second) {
        price.gets_per_sample += 1;
        read_samples += alone ? 1 : blocks.SizeOf(block);
      }
    }
  }
  if (price.samples == 0) return Bad("the samples do not fill one global batch");
  price.gets_per_sample /= static_cast<double>(price.samples);
  price.samples_read_per_used =
      static_cast<double>(read_samples) / static_cast<double>(price.samples);
  price.blocks_per_batch = static_cast<double>(blocks_in_batches) / static_cast<double>(batches);
  price.distance = Distance(order, global);
  price.distance_of_global = Distance(global_shuffle, global);
  return price;
}

}  // namespace

Result<std::unique_ptr<Order>> Order::Open(const std::vector<SourceOptions>& sources,
                                           const OrderOptions& options, const StoreOptions& store,
                                           const std::vector<Growth>& growth) {
  auto order = std::make_unique<RunningOrder>();
  FB_RETURN_IF_ERROR(order->Open(sources, options, store, growth));
  return std::unique_ptr<Order>(std::move(order));
}

Result<std::unique_ptr<Order>> Order::OfCount(int64_t samples, int64_t block_samples,
                                              const OrderOptions& options, const Growth& growth) {
  if (samples < 1 || block_samples < 1) {
    return Bad(
        fmt::format("{} samples in blocks of {}: both must be at least 1", samples, block_samples));
  }
  auto order = std::make_unique<RunningOrder>();
  FB_RETURN_IF_ERROR(order->OpenCount(static_cast<uint64_t>(samples),
                                      static_cast<uint64_t>(block_samples), options, growth));
  return std::unique_ptr<Order>(std::move(order));
}

}  // namespace forebay
