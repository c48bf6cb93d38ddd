#include "sim/sim_job.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "base/assert.h"
#include "feed/batch_layout.h"

namespace forebay::sim {
namespace {

// Compares every byte with the pattern, writes the sample's number and, where ragged, its bytes.
class PatternDecoder : public feed::SampleDecoder {
 public:
  explicit PatternDecoder(const PatternDataset& dataset) : dataset_(dataset) {}

  Status Decode(const feed::SamplePlan& plan, size_t unit, const feed::UnitBytes& bytes,
                const feed::RowTargets& rows, size_t* bad_row) override {
    const auto& samples = *static_cast<const std::vector<uint64_t>*>(plan.detail.get());
    const size_t first_row = plan.units[unit].first_row;
    for (size_t row = 0; row < rows.size(); ++row) {
      *bad_row = row;
      const size_t all = dataset_.plans_together() || plan.units.size() == 1;
      FB_RETURN_IF_ERROR(
          DecodeRow(samples[first_row + row], all ? 0 : unit, all, bytes, rows[row]));
    }
    return {};
  }

 private:
  // Of all cameras, or of the unit's alone.
  Status DecodeRow(uint64_t sample, size_t camera, bool all, const feed::UnitBytes& bytes,
                   const feed::RowTarget& row) {
    if (dataset_.undecodable(sample)) return Status(Code::kDataLoss, "no sample");
    const MutableBytes numbers = row.array(0);
    const size_t cameras = numbers.size() / sizeof(sample);
    for (size_t i = camera; i < (all ? cameras : camera + 1); ++i) {
      std::memcpy(numbers.data() + i * sizeof(sample), &sample, sizeof(sample));
    }
    const uint64_t size = dataset_.ExtentBytes(sample);
    for (size_t i = 0; i < bytes.extents.size() && size > 0; ++i) {
      const Extent& extent = bytes.extents[i];
      const uint64_t from = dataset_.OffsetOf(sample) - extent.range.offset;
      const ByteView view = bytes.buffers[i]->Contiguous(from, size, scratch_);
      for (size_t at = 0; at < view.size(); ++at) {
        if (view[at] == PatternDataset::ByteAt(extent.object, extent.range.offset + from + at)) {
          continue;
        }
        return Status(Code::kDataLoss, fmt::format("byte {} of object {} is wrong",
                                                   extent.range.offset + from + at, extent.object));
      }
      if (row.layout->arrays() == 1) continue;
      std::memcpy(row.array(1).data() + (camera + i) * view.size(), view.data(), view.size());
    }
    return {};
  }

  const PatternDataset& dataset_;
  std::vector<std::byte> scratch_;
};

Duration Jittered(Duration mean, double jitter, Random& random) {
  return std::chrono::duration_cast<Duration>(mean * (1 + jitter * (2 * random.NextDouble() - 1)));
}

double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

PatternDataset::PatternDataset(const Options& options) : options_(options) {
  arrays_.push_back({.name = "sample_of_camera",
                     .dtype = "int64",
                     .shape = {options.cameras},
                     .bytes = options.cameras * sizeof(uint64_t)});
  if (options.ragged) {
    arrays_.push_back(
        {.name = "bytes", .dtype = "uint8", .shape = {}, .bytes = 0, .offsets = "offsets"});
  }
  std::vector<ObjectVersion> objects;
  objects.reserve(options.cameras);
  for (uint32_t camera = 0; camera < options.cameras; ++camera) {
    objects.push_back({KeyOf(camera), object_bytes(), options.etag, ""});
  }
  objects_ = std::make_shared<const ObjectList>(std::move(objects));
}

std::string PatternDataset::KeyOf(uint32_t camera) { return fmt::format("camera-{}", camera); }

Result<feed::SamplePlan> PatternDataset::PlanSample(uint64_t sample, uint64_t) const {
  feed::SamplePlan plan;
  const uint64_t at = OffsetOf(sample);
  const uint64_t bytes = ExtentBytes(sample);
  for (uint32_t camera = 0; camera < options_.cameras; ++camera) {
    if (bytes > 0) plan.extents.push_back({camera, {at, at + bytes}});
    if (!options_.one_unit) plan.units.push_back({bytes > 0 ? camera : 0, bytes > 0 ? 1U : 0U});
  }
  if (options_.one_unit) plan.units.push_back({0, plan.extents.size()});
  if (options_.ragged) plan.ragged_bytes = {bytes * options_.cameras};
  plan.detail = std::make_shared<const std::vector<uint64_t>>(1, sample);
  return plan;
}

std::vector<std::vector<uint32_t>> PatternDataset::Together(
    std::span<const uint64_t> samples) const {
  if (options_.chunk == 0) return feed::Dataset::Together(samples);
  std::map<uint64_t, std::vector<uint32_t>> of_chunk;
  for (size_t i = 0; i < samples.size(); ++i) {
    of_chunk[samples[i] / options_.chunk].push_back(static_cast<uint32_t>(i));
  }
  std::vector<std::vector<uint32_t>> groups;
  groups.reserve(of_chunk.size());
  for (auto& [chunk, group] : of_chunk) groups.push_back(std::move(group));
  return groups;
}

// A unit for each sample, over its chunk's extents.
Result<feed::SamplePlan> PatternDataset::PlanTogether(std::span<const uint64_t> samples,
                                                      uint64_t gap_bytes, size_t* bad_row) const {
  if (options_.chunk == 0) return feed::Dataset::PlanTogether(samples, gap_bytes, bad_row);
  feed::SamplePlan plan;
  std::map<uint64_t, size_t> first_extent;  // of a chunk
  for (size_t row = 0; row < samples.size(); ++row) {
    const uint64_t chunk = samples[row] / options_.chunk;
    const auto [it, added] = first_extent.try_emplace(chunk, plan.extents.size());
    const uint64_t end = std::min(options_.samples, (chunk + 1) * options_.chunk);
    for (uint32_t camera = 0; camera < options_.cameras && added; ++camera) {
      plan.extents.push_back({camera, {OffsetOf(chunk * options_.chunk), OffsetOf(end)}});
    }
    plan.units.push_back({it->second, options_.cameras, row, 1});
    plan.used_bytes += options_.cameras * ExtentBytes(samples[row]);
    if (options_.ragged) plan.ragged_bytes.push_back(ExtentBytes(samples[row]) * options_.cameras);
  }
  plan.detail = std::make_shared<const std::vector<uint64_t>>(samples.begin(), samples.end());
  return plan;
}

uint64_t PatternDataset::ExtentBytes(uint64_t sample) const {
  if (!options_.ragged) return options_.extent_bytes;
  const uint64_t drawn = DeriveKey(sample, HashName("size"));
  // One in eight holds nothing.
  return drawn % 8 == 0 ? 0 : 1 + (drawn >> 8) % options_.extent_bytes;
}

Result<std::unique_ptr<feed::SampleDecoder>> PatternDataset::MakeDecoder() const {
  return std::unique_ptr<feed::SampleDecoder>(std::make_unique<PatternDecoder>(*this));
}

std::string PatternDataset::DescribeSample(uint64_t sample) const {
  return fmt::format("pattern {}", sample);
}

uint64_t PatternDataset::OutputBytesMax(uint64_t rows) const {
  return rows * options_.cameras * (sizeof(uint64_t) + options_.extent_bytes) +
         2 * feed::BatchLayout::kAlign;
}

Job::Job(World& world, const PatternDataset& dataset, std::shared_ptr<store::ObjectStore> store,
         const JobOptions& options)
    : world_(world),
      dataset_(dataset),
      options_(options),
      random_(DeriveKey(options.seed, HashName("job"))),
      coordinator_(world.NewExecutor()),
      slabs_(SlabPool::Make()) {
  tier_ = std::make_unique<fetch::StoreTier>(
      std::vector<fetch::StoreOfObjects>{{0, std::move(store)}}, dataset.objects(), coordinator_);
  auto order = order::RunOrder::Make(
      {.seed = options.seed,
       .sources = {{"", order::GlobalShuffle{}, {{0, dataset.sample_count()}}}}});
  FB_ASSERT(order.ok());
  feed::Sampler::Options sampling;
  sampling.slicing = {options.batch_size, options.world_size, options.rank, order::Tail::kDrop};
  sampling.epochs = options.epochs;
  sampler_ = std::make_unique<feed::Sampler>(dataset, *std::move(order), sampling);
  const int depth_max = 64;
  planner_ = std::make_unique<plan::Planner>(
      *sampler_, plan::RunwayOptions{.fixed_s = options.runway_s,
                                     .depth_max = depth_max,
                                     .decode_threads = options.decode_threads});
  const auto units = static_cast<int64_t>(dataset.PlanSample(0, 0)->units.size());
  decode_ = std::make_unique<SimDecodePool>(
      dataset, options.decode_threads, coordinator_,
      [this, units] { return Jittered(options_.decode / units, options_.decode_jitter, random_); });
  feed::Feeder::Options feed_options;
  feed_options.memory_bytes = options.memory_bytes;
  feed_options.capacity = options.batch_size * (depth_max + 1);
  feed_options.skip_max = options.skip_max;
  feeder_ = std::make_unique<feed::Feeder>(
      dataset, *sampler_, *planner_, *decode_, feed::OutputPool::Make(options.memory_bytes),
      coordinator_, feed_options, [this](feed::ReadyGroup group) {
        if (closed_) violations_.push_back("a batch came after close");
        if (group.generation != generation_) return;
        ready_.push_back(std::move(group));
        if (waiting_) Take();
      });
  std::vector<fetch::Tier*> tiers{tier_.get()};
  if (options.memory_tier_bytes > 0) {
    memory_tier_ = std::make_unique<fetch::MemoryTier>(options.memory_tier_bytes, coordinator_);
    tiers.insert(tiers.begin(), memory_tier_.get());
  }
  fetcher_ = std::make_unique<fetch::Fetcher>(
      slabs_, tiers, feeder_.get(), fetch::Fetcher::Options{.share = dataset.shares_extents()});
  feeder_->Attach(fetcher_.get(), memory_tier_.get());
}

Job::~Job() {
  if (!closed_) Close();
}

void Job::Start() {
  left_ = world_.now();
  coordinator_.Post([this] {
    feeder_->Pump();
    Come();
  });
}

void Job::Come() {
  if (closed_) return;
  came_ = world_.now();
  waiting_ = true;
  if (!ready_.empty()) {
    Take();
  } else {
    feeder_->HeadWaiting(generation_);
  }
}

void Job::Take() {
  waiting_ = false;
  feed::ReadyGroup group = std::move(ready_.front());
  ready_.pop_front();
  Check(group);
  const Duration wait = world_.now() - came_;
  waits_.push_back(Seconds(wait));
  const Duration step = came_ - left_;
  left_ = world_.now();
  // In a turn of its own: a batch may come while the feeder is at work.
  coordinator_.Post([this, step, wait, generation = generation_] {
    if (closed_) return;
    feeder_->Taken(generation, step, wait);
    if (feeder_->budget().used() > feeder_->budget().limit()) {
      violations_.push_back("more is reserved than the budget holds");
    }
  });
  coordinator_.PostAt(world_.now() + Jittered(options_.step, options_.step_jitter, random_),
                      [this] { Come(); });
}

void Job::Check(const feed::ReadyGroup& group) {
  const order::OrderSpec spec{dataset_.sample_count(), options_.seed, order::GlobalShuffle{}};
  if (group.position == 0 && position_ > 0) {
    position_ = 0;
    ++epoch_;
  }
  if (group.epoch != epoch_ || group.position != position_) {
    violations_.push_back(fmt::format("epoch {} position {} came, {} {} was due", group.epoch,
                                      group.position, epoch_, position_));
  }
  position_ = group.position + group.global_samples;
  if (!group.status.ok()) {
    errors_.push_back(group.status);
    return;
  }
  order::EpochOrder order(spec, group.epoch);
  for (uint64_t row = 0; row < group.rows; ++row) {
    const auto sample = static_cast<uint64_t>(group.samples[row]);
    delivered_.push_back(group.samples[row]);
    const uint64_t position = group.position + options_.rank * options_.batch_size + row;
    if (group.skipped.empty() && sample != order.SampleAt(position)) {
      violations_.push_back(fmt::format("position {} holds sample {}", position, sample));
    }
    CheckRow(group, row);
  }
}

void Job::CheckRow(const feed::ReadyGroup& group, uint64_t row) {
  const auto sample = static_cast<uint64_t>(group.samples[row]);
  const uint64_t cameras = dataset_.arrays()[0].bytes / sizeof(uint64_t);
  const MutableBytes numbers = group.layout->RowOf(group.block.get(), 0, row);
  for (uint64_t c = 0; c < cameras; ++c) {
    uint64_t written = 0;
    std::memcpy(&written, numbers.data() + c * sizeof(written), sizeof(written));
    if (written != sample) {
      violations_.push_back(
          fmt::format("sample {} holds camera {}'s sample {}", sample, c, written));
    }
  }
  if (!dataset_.ragged()) return;
  const uint64_t bytes = dataset_.ExtentBytes(sample);
  const MutableBytes raw = group.layout->RowOf(group.block.get(), 1, row);
  bool right = raw.size() == bytes * cameras;
  for (uint64_t i = 0; right && i < raw.size(); ++i) {
    right = raw[i] == PatternDataset::ByteAt(static_cast<uint32_t>(i / bytes),
                                             dataset_.OffsetOf(sample) + i % bytes);
  }
  if (!right) violations_.push_back(fmt::format("sample {} holds other bytes", sample));
}

void Job::Restart(uint64_t epoch, uint64_t position) {
  ready_.clear();
  epoch_ = epoch;
  position_ = position;
  coordinator_.Post([this, epoch, position, generation = ++generation_] {
    feeder_->Restart(generation, epoch, position);
    if (waiting_) feeder_->HeadWaiting(generation);
  });
}

void Job::Close() {
  closed_ = true;
  bool done = false;
  coordinator_.Post([this, &done] { feeder_->Close([&done] { done = true; }); });
  if (!world_.RunUntil([&] { return done; }, world_.now() + std::chrono::minutes(10))) {
    violations_.push_back("close did not come to its end");
  }
  if (feeder_->budget().used() != 0) violations_.push_back("bytes stay reserved after close");
}

}  // namespace forebay::sim
