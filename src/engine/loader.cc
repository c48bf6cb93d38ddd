#include "forebay/loader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/random.h"
#include "engine/open_catalog.h"
#include "engine/pipeline.h"
#include "engine/store_metrics.h"
#include "engine/store_set.h"
#include "feed/batch_layout.h"
#include "feed/video_clips.h"
#include "sys/thread.h"

namespace forebay {
namespace {

constexpr int kStateSchema = 1;
// Of the memory, what is kept of delivered extents for another use: one part in eight.
constexpr uint64_t kMemoryTierShare = 8;

Status CheckOptions(const ClipsOptions& clips, const LoaderOptions& options) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  const auto positive = [&](const char* name, int64_t value) {
    return value > 0 ? Status() : bad(fmt::format("{} is {}: it must be at least 1", name, value));
  };
  FB_RETURN_IF_ERROR(positive("frames", clips.frames));
  FB_RETURN_IF_ERROR(positive("step", clips.step));
  FB_RETURN_IF_ERROR(positive("hop", clips.hop));
  FB_RETURN_IF_ERROR(positive("batch_size", options.batch_size));
  FB_RETURN_IF_ERROR(positive("world_size", options.world_size));
  FB_RETURN_IF_ERROR(positive("held_limit", options.held_limit));
  if (clips.uri.empty()) return bad("uri is empty");
  if ((clips.width > 0) != (clips.height > 0) || clips.width < 0 || clips.height < 0) {
    return bad(fmt::format("size {}x{}: give both, or neither", clips.width, clips.height));
  }
  if (clips.width > 16384 || clips.height > 16384) return bad("a size over 16384 is refused");
  if (options.rank < 0 || options.rank >= options.world_size) {
    return bad(fmt::format("rank {} is not in [0, {})", options.rank, options.world_size));
  }
  if (std::isnan(options.runway_s) || options.runway_s > 3600) return bad("runway: at most 3600 s");
  if (options.decode_threads < 0) return bad("decode_threads is negative");
  return {};
}

// Everything that decides which sample stands at which position.
std::string SpecHash(const ClipsOptions& clips, const LoaderOptions& options, uint64_t samples) {
  const std::string spec = fmt::format(
      "clips/1 pattern={} cameras={} frames={} step={} hop={} shuffle={} samples={}", clips.pattern,
      fmt::join(clips.cameras, ","), clips.frames, clips.step, clips.hop, options.shuffle, samples);
  return fmt::format("{:016x}", HashName(spec));
}

class ClipsLoader : public Loader {
 public:
  ClipsLoader(ClipsOptions clips, LoaderOptions options, StoreOptions store)
      : clips_options_(std::move(clips)),
        options_(options),
        store_options_(std::move(store)),
        held_(std::make_shared<std::atomic<int64_t>>(0)) {}
  ~ClipsLoader() override { Close(); }

  Status Open();

  const std::vector<ArraySpec>& arrays() const override { return specs_; }
  int64_t sample_count() const override { return static_cast<int64_t>(order_.samples); }
  int64_t batches_per_epoch() const override {
    return static_cast<int64_t>(order::BatchesFrom(slicing_, order_.samples, 0));
  }
  Result<std::optional<Batch>> Next(std::chrono::nanoseconds timeout) override;
  bool WaitReady(std::chrono::nanoseconds timeout) override;
  Status SetEpoch(int64_t epoch) override;
  LoaderState State() const override;
  Status LoadState(const LoaderState& state) override;
  const std::vector<std::string>& scenes() const override { return dataset_->scenes(); }
  Status SampleTimes(std::span<const int64_t> samples, std::span<int32_t> scene,
                     std::span<double> times, std::span<double> half_frame) const override;
  std::string RunwayReason() const override;
  std::map<std::string, double> Metrics() const override;
  void Close() override;

 private:
  Status SetBudget();
  void SetSpecs();
  // The pipeline, made on first use; kCancelled once closed.
  Result<std::shared_ptr<engine::Pipeline>> Start() FB_EXCLUDES(mutex_);
  Result<std::shared_ptr<engine::Pipeline>> MakePipeline() FB_EXCLUDES(mutex_);
  std::shared_ptr<engine::Pipeline> pipeline() const FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return pipeline_;
  }
  // All zero before the pipeline was made; the last ones known once it is gone.
  struct Numbers {
    engine::PipelineNumbers pipeline;
    store::StoreCounters store;
  };
  Numbers LatestNumbers() const FB_EXCLUDES(mutex_);
  bool AtEnd() const;  // no further epoch
  std::optional<order::BatchSlice> Slice() const;
  void BeginWait(const engine::Pipeline& pipeline);
  Batch MakeBatch(feed::ReadyGroup group);
  Array MakeArray(size_t i, int64_t rows, std::shared_ptr<void> owner, void* data) const;
  Status WaitTimedOut(const engine::Pipeline& pipeline, std::chrono::nanoseconds timeout) const;
  void Seek(uint64_t epoch, uint64_t position);

  ClipsOptions clips_options_;
  LoaderOptions options_;
  StoreOptions store_options_;
  std::unique_ptr<feed::VideoClips> dataset_;
  std::shared_ptr<const std::vector<ObjectVersion>> objects_;
  std::string catalog_hash_;
  std::string spec_hash_;
  order::OrderSpec order_;
  order::Slicing slicing_;
  std::vector<ArraySpec> specs_;
  engine::PipelineOptions pipeline_options_;
  std::shared_ptr<std::atomic<int64_t>> held_;  // delivered batches somebody still holds

  // Close may come from any thread while the consumer waits: whoever uses the pipeline holds it,
  // and the last to let go takes it down.
  mutable Mutex mutex_;
  std::shared_ptr<engine::Pipeline> pipeline_ FB_GUARDED_BY(mutex_);
  std::shared_ptr<engine::StoreSet> stores_ FB_GUARDED_BY(mutex_);  // the pipeline's
  mutable Numbers last_numbers_ FB_GUARDED_BY(mutex_);

  // Consumer's thread.
  std::atomic<bool> closed_ = false;
  Status failed_;
  uint64_t epoch_ = 0;
  uint64_t position_ = 0;
  int64_t step_ = 0;
  std::vector<int64_t> skips_;
  bool waiting_ = false;  // the consumer has come for the next batch
  bool head_posted_ = false;
  Time came_{};  // when it came
  Time left_{};  // when it was last given one
};

Status ClipsLoader::Open() {
  FB_RETURN_IF_ERROR(CheckOptions(clips_options_, options_));
  // A store set of its own, gone before this returns: no thread lives until the first Next.
  FB_ASSIGN_OR_RETURN(const auto stores, engine::StoreSet::Make(store_options_));
  FB_ASSIGN_OR_RETURN(const store::Uri source, store::ParseUri(clips_options_.uri));
  const std::string prefix = engine::PrefixOf(source);
  FB_ASSIGN_OR_RETURN(const auto catalog,
                      engine::OpenCatalog(*stores, clips_options_.uri, clips_options_.catalog));
  catalog_hash_ = catalog->content_hash();
  auto objects = std::make_shared<std::vector<ObjectVersion>>();
  for (uint32_t i = 0; i < catalog->object_count(); ++i) {
    const catalog::CatalogObject& object = catalog->object(i);
    objects->push_back({prefix + object.key, object.size, object.etag});
  }
  objects_ = std::move(objects);
  feed::VideoClipsOptions wanted;
  wanted.pattern = clips_options_.pattern;
  wanted.cameras = clips_options_.cameras;
  wanted.frames = static_cast<uint32_t>(clips_options_.frames);
  wanted.step = static_cast<uint32_t>(clips_options_.step);
  wanted.hop = static_cast<uint32_t>(clips_options_.hop);
  wanted.width = clips_options_.width;
  wanted.height = clips_options_.height;
  wanted.chw = clips_options_.chw;
  FB_ASSIGN_OR_RETURN(dataset_, feed::VideoClips::Make(catalog, wanted));
  for (const std::string& line : dataset_->left_out()) {
    Log(LogLevel::kWarn, fmt::format("left out: {}", line));
  }
  order_ = {dataset_->sample_count(), options_.seed, options_.shuffle};
  slicing_ = {static_cast<uint64_t>(options_.batch_size),
              static_cast<uint64_t>(options_.world_size), static_cast<uint64_t>(options_.rank),
              options_.drop_last};
  spec_hash_ = SpecHash(clips_options_, options_, order_.samples);
  if (batches_per_epoch() == 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} samples do not fill one batch of {} on {} ranks; "
                              "drop_last=False would pad it",
                              order_.samples, options_.batch_size, options_.world_size));
  }
  SetSpecs();
  return SetBudget();
}

Status ClipsLoader::SetBudget() {
  const uint64_t batch = slicing_.batch_size;
  const uint64_t output = SlabsFor(feed::BatchLayout(dataset_->arrays(), batch).bytes) * kSlabBytes;
  const uint64_t needed = output + dataset_->raw_bytes_max();
  const bool keeps = options_.epochs != 1;
  const uint64_t tier = keeps ? options_.memory_bytes / kMemoryTierShare : 0;
  pipeline_options_.memory_tier_bytes = options_.memory_bytes - tier >= needed ? tier : 0;
  pipeline_options_.memory_bytes = options_.memory_bytes - pipeline_options_.memory_tier_bytes;
  if (pipeline_options_.memory_bytes < needed) {
    return Status(Code::kInvalidArgument,
                  fmt::format("memory of {} is too little: the largest batch needs {} ({} bytes)",
                              FormatSize(options_.memory_bytes), FormatSize(needed), needed));
  }
  pipeline_options_.order = order_;
  pipeline_options_.slicing = slicing_;
  pipeline_options_.epochs = options_.epochs;
  pipeline_options_.runway_s = options_.runway_s < 0 ? -1 : options_.runway_s;
  pipeline_options_.decode_threads =
      options_.decode_threads > 0 ? options_.decode_threads : std::max(1, sys::CpuCount() - 1);
  pipeline_options_.skip_max = options_.skip_max;
  return {};
}

void ClipsLoader::SetSpecs() {
  const int64_t batch = options_.batch_size;
  for (const feed::SampleArray& array : dataset_->arrays()) {
    ArraySpec spec{array.name, array.dtype, {batch}};
    spec.shape.insert(spec.shape.end(), array.shape.begin(), array.shape.end());
    specs_.push_back(std::move(spec));
  }
  specs_.push_back({"_sample", "int64", {batch}});
  specs_.push_back({"_epoch", "int32", {batch}});
  if (!options_.drop_last) specs_.push_back({"_pad", "bool", {batch}});
}

Result<std::shared_ptr<engine::Pipeline>> ClipsLoader::MakePipeline() {
  FB_ASSIGN_OR_RETURN(auto stores, engine::StoreSet::Make(store_options_));
  FB_ASSIGN_OR_RETURN(const store::Uri source, store::ParseUri(clips_options_.uri));
  FB_ASSIGN_OR_RETURN(auto store, stores->StoreFor(source));
  FB_ASSIGN_OR_RETURN(auto pipeline, engine::Pipeline::Make(*dataset_, std::move(store), objects_,
                                                            pipeline_options_));
  const MutexLock lock(mutex_);
  stores_ = std::move(stores);
  return std::shared_ptr<engine::Pipeline>(std::move(pipeline));
}

Result<std::shared_ptr<engine::Pipeline>> ClipsLoader::Start() {
  if (auto running = pipeline()) return running;
  FB_RETURN_IF_ERROR(failed_);
  Result<std::shared_ptr<engine::Pipeline>> made = MakePipeline();
  if (!made.ok()) {
    failed_ = made.status();
    return made;
  }
  if (epoch_ > 0 || position_ > 0) (*made)->Restart(epoch_, position_);
  const MutexLock lock(mutex_);
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  pipeline_ = *made;
  return made;
}

bool ClipsLoader::AtEnd() const {
  return options_.epochs >= 0 && epoch_ >= static_cast<uint64_t>(options_.epochs);
}

std::optional<order::BatchSlice> ClipsLoader::Slice() const {
  return order::SliceAt(slicing_, order_.samples, position_);
}

void ClipsLoader::BeginWait(const engine::Pipeline& pipeline) {
  if (waiting_) return;
  waiting_ = true;
  head_posted_ = false;
  came_ = pipeline.Now();
  if (left_ == Time{}) left_ = came_;
}

bool ClipsLoader::WaitReady(std::chrono::nanoseconds timeout) {
  if (closed_ || AtEnd() || !Slice()) return true;
  const auto pipeline = Start();
  if (!pipeline.ok()) return true;
  if (!waiting_ && *held_ >= options_.held_limit) return true;  // Next says so
  BeginWait(**pipeline);
  if ((*pipeline)->delivery().WaitUntil(came_)) return true;
  if (!std::exchange(head_posted_, true)) (*pipeline)->HeadWaiting();
  return (*pipeline)->delivery().WaitUntil((*pipeline)->Now() + timeout);
}

Result<std::optional<Batch>> ClipsLoader::Next(std::chrono::nanoseconds timeout) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (AtEnd()) return std::optional<Batch>();
  if (!Slice()) {
    ++epoch_;
    position_ = 0;
    step_ = 0;
    skips_.clear();
    return std::optional<Batch>();
  }
  FB_ASSIGN_OR_RETURN(const auto pipeline, Start());
  if (!waiting_ && *held_ >= options_.held_limit) {
    return Status(
        Code::kResourceExhausted,
        fmt::format("{} batches are still held; release some, or raise held_limit", held_->load()));
  }
  if (!WaitReady(timeout)) return WaitTimedOut(*pipeline, timeout);
  std::optional<feed::ReadyGroup> group = pipeline->delivery().TryTake();
  if (!group) return Status(Code::kCancelled, "the loader was closed while it waited");
  const Time now = pipeline->Now();
  pipeline->Taken(came_ - left_, head_posted_ ? now - came_ : Duration{});
  waiting_ = false;
  left_ = now;
  if (!group->status.ok()) {
    // Not returned, so not consumed: the state names it, and the next call tries again.
    Status failed = std::move(group->status)
                        .WithContext(fmt::format("batch {} of epoch {}", step_, group->epoch));
    group.reset();
    Seek(epoch_, position_);
    return failed;
  }
  position_ += group->global_samples;
  ++step_;
  for (const uint64_t skip : group->skipped) skips_.push_back(static_cast<int64_t>(skip));
  return std::optional<Batch>(MakeBatch(*std::move(group)));
}

Status ClipsLoader::WaitTimedOut(const engine::Pipeline& pipeline,
                                 std::chrono::nanoseconds timeout) const {
  return Status(
      Code::kDeadlineExceeded,
      fmt::format("batch {} of epoch {} (samples from position {}) is not ready after "
                  "{:.1f} s in this wait, {:.1f} s in all; {}",
                  step_, epoch_, position_, std::chrono::duration<double>(timeout).count(),
                  std::chrono::duration<double>(pipeline.Now() - came_).count(), RunwayReason()));
}

Array ClipsLoader::MakeArray(size_t i, int64_t rows, std::shared_ptr<void> owner,
                             void* data) const {
  Array array{
      .spec = &specs_[i], .rows = rows, .owner = std::move(owner), .data = data, .bytes = 0};
  return array;
}

Batch ClipsLoader::MakeBatch(feed::ReadyGroup group) {
  // Counts as held until the last array is gone.
  struct Held {
    std::shared_ptr<std::byte> block;
    std::shared_ptr<std::atomic<int64_t>> count;
    std::vector<int64_t> samples;
    std::vector<int32_t> epochs;
    std::vector<uint8_t> pads;
    ~Held() { --*count; }
  };
  ++*held_;
  auto held = std::make_shared<Held>();
  held->block = std::move(group.block);
  held->count = held_;
  held->samples = std::move(group.samples);
  held->epochs.assign(group.rows, static_cast<int32_t>(group.epoch));
  held->pads.assign(group.pads.begin(), group.pads.end());
  const auto rows = static_cast<int64_t>(group.rows);
  const auto& arrays = dataset_->arrays();
  const feed::BatchLayout layout(arrays, group.rows);
  Batch batch{.arrays = {}, .step = step_ - 1, .epoch = static_cast<int64_t>(group.epoch)};
  for (size_t i = 0; i < arrays.size(); ++i) {
    batch.arrays.push_back(MakeArray(i, rows, held, held->block.get() + layout.offsets[i]));
    batch.arrays.back().bytes = arrays[i].bytes * group.rows;
  }
  size_t i = arrays.size();
  batch.arrays.push_back(MakeArray(i++, rows, held, held->samples.data()));
  batch.arrays.back().bytes = group.rows * sizeof(int64_t);
  batch.arrays.push_back(MakeArray(i++, rows, held, held->epochs.data()));
  batch.arrays.back().bytes = group.rows * sizeof(int32_t);
  if (i < specs_.size()) {
    batch.arrays.push_back(MakeArray(i, rows, held, held->pads.data()));
    batch.arrays.back().bytes = group.rows;
  }
  return batch;
}

void ClipsLoader::Seek(uint64_t epoch, uint64_t position) {
  epoch_ = epoch;
  position_ = position;
  step_ = static_cast<int64_t>(position / (slicing_.batch_size * slicing_.world_size));
  waiting_ = false;
  left_ = Time{};
  if (const auto running = pipeline()) running->Restart(epoch, position);
}

Status ClipsLoader::SetEpoch(int64_t epoch) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (epoch < 0) return Status(Code::kInvalidArgument, fmt::format("epoch {} is negative", epoch));
  const auto wanted = static_cast<uint64_t>(epoch);
  if (wanted == epoch_ && position_ == 0) return {};  // what is fetched ahead stays
  skips_.clear();
  Seek(wanted, 0);
  return {};
}

LoaderState ClipsLoader::State() const {
  return {.schema = kStateSchema,
          .spec_hash = spec_hash_,
          .catalog_hash = catalog_hash_,
          .seed = options_.seed,
          .epoch = static_cast<int64_t>(epoch_),
          .position = static_cast<int64_t>(position_),
          .skips = skips_};
}

Status ClipsLoader::LoadState(const LoaderState& state) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  const auto differs = [](const char* field, const auto& saved, const auto& mine) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the state's {} is {}, this loader's is {}", field, saved, mine));
  };
  if (state.schema != kStateSchema) return differs("schema", state.schema, kStateSchema);
  if (state.catalog_hash != catalog_hash_) {
    return differs("catalog_hash", state.catalog_hash, catalog_hash_);
  }
  if (state.spec_hash != spec_hash_) return differs("spec_hash", state.spec_hash, spec_hash_);
  if (state.seed != options_.seed) return differs("seed", state.seed, options_.seed);
  if (state.epoch < 0 || state.position < 0 ||
      static_cast<uint64_t>(state.position) > order_.samples) {
    return Status(Code::kInvalidArgument,
                  fmt::format("epoch {}, position {} are no place in {} samples", state.epoch,
                              state.position, order_.samples));
  }
  const bool past =
      state.epoch > options_.epochs || (state.epoch == options_.epochs && state.position > 0);
  if (options_.epochs >= 0 && past) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the state's epoch {}, position {} lies beyond this loader's {} "
                              "epochs",
                              state.epoch, state.position, options_.epochs));
  }
  skips_ = state.skips;
  Seek(static_cast<uint64_t>(state.epoch), static_cast<uint64_t>(state.position));
  return {};
}

Status ClipsLoader::SampleTimes(std::span<const int64_t> samples, std::span<int32_t> scene,
                                std::span<double> times, std::span<double> half_frame) const {
  const auto frames = static_cast<size_t>(clips_options_.frames);
  if (scene.size() != samples.size() || half_frame.size() != samples.size() ||
      times.size() != samples.size() * frames) {
    return Status(Code::kInvalidArgument, "the outputs do not fit the samples");
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] < 0 || samples[i] >= sample_count()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("sample {} is not in [0, {})", samples[i], sample_count()));
    }
    const feed::VideoClips::Times one = dataset_->TimesOf(static_cast<uint64_t>(samples[i]));
    scene[i] = static_cast<int32_t>(one.scene);
    half_frame[i] = one.half_frame;
    std::ranges::copy(one.seconds, times.begin() + static_cast<std::ptrdiff_t>(i * frames));
  }
  return {};
}

std::string ClipsLoader::RunwayReason() const {
  const auto running = pipeline();
  if (!running) return "nothing is being fetched";
  const auto numbers = running->Numbers();
  return numbers.ok() ? numbers->runway_reason : numbers.status().ToString();
}

ClipsLoader::Numbers ClipsLoader::LatestNumbers() const {
  std::shared_ptr<engine::StoreSet> stores;
  if (const auto running = pipeline()) {
    auto numbers = running->Numbers();
    const MutexLock lock(mutex_);
    if (numbers.ok()) last_numbers_.pipeline = *std::move(numbers);
    stores = stores_;
  }
  if (stores) {
    const auto counters = stores->Counters();
    const MutexLock lock(mutex_);
    // One data set, one store.
    if (!counters.empty()) last_numbers_.store = counters.begin()->second;
  }
  const MutexLock lock(mutex_);
  return last_numbers_;
}

std::map<std::string, double> ClipsLoader::Metrics() const {
  std::map<std::string, double> m;
  const Numbers latest = LatestNumbers();
  engine::AddStoreMetrics(latest.store, &m);
  const engine::PipelineNumbers* numbers = &latest.pipeline;
  const auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
  const feed::FeedStats& feed = numbers->feed;
  const fetch::FetchStats& fetch = numbers->fetch;
  const auto count = [](uint64_t n) { return static_cast<double>(n); };
  m["forebay_samples_total"] = count(feed.samples);
  m["forebay_batches_total"] = count(feed.groups);
  m["forebay_stall_seconds_total"] = seconds(feed.stall);
  m["forebay_stall_seconds_total{cause=\"cold_start\"}"] = seconds(feed.stall_first);
  m["forebay_stall_seconds_total{where=\"fetch\"}"] = seconds(feed.stall_fetch);
  m["forebay_stall_seconds_total{where=\"prepare\"}"] = seconds(feed.stall - feed.stall_fetch);
  m["forebay_step_duration_seconds"] = numbers->step_s;
  m["forebay_runway_seconds"] = numbers->runway_s;
  m["forebay_runway_batches"] = numbers->runway_batches;
  m["forebay_stage_busy_ratio{stage=\"decode\"}"] = numbers->decode_busy_ratio;
  m["forebay_decode_busy_seconds_total"] = seconds(feed.decode_busy);
  m["forebay_store_read_bytes_total"] = count(fetch.bytes_fetched);
  m["forebay_used_bytes_total"] = count(feed.bytes_used);
  m["forebay_cache_read_bytes_total{tier=\"memory\"}"] = count(fetch.bytes_from_memory);
  m["forebay_prefetch_parts_total{outcome=\"useful\"}"] = count(feed.parts_useful);
  m["forebay_prefetch_parts_total{outcome=\"late\"}"] = count(feed.parts_late);
  m["forebay_prefetch_parts_total{outcome=\"wasted\"}"] = count(feed.parts_wasted);
  m["forebay_prefetch_parts_total{outcome=\"failed\"}"] = count(feed.parts_failed);
  m["forebay_demand_retries_total"] = count(feed.demand_retries);
  m["forebay_samples_replaced_total"] = count(feed.substitutes);
  m["forebay_memory_bytes{kind=\"limit\"}"] = static_cast<double>(options_.memory_bytes);
  m["forebay_memory_bytes{kind=\"reserved\"}"] = count(numbers->budget_used);
  m["forebay_memory_bytes{kind=\"reserved_peak\"}"] = count(numbers->budget_peak);
  m["forebay_memory_bytes{kind=\"slabs\"}"] = count(numbers->slab_bytes);
  m["forebay_memory_bytes{kind=\"outputs\"}"] = count(numbers->output_bytes);
  m["forebay_memory_bytes{kind=\"memory_tier\"}"] = count(numbers->memory_tier_bytes);
  return m;
}

void ClipsLoader::Close() {
  (void)LatestNumbers();                     // what Metrics says from now on
  std::shared_ptr<engine::StoreSet> stores;  // both taken down after the lock is gone
  std::shared_ptr<engine::Pipeline> last;
  const MutexLock lock(mutex_);
  closed_ = true;
  last.swap(pipeline_);
  stores.swap(stores_);
  if (last) last->delivery().Close();  // wakes a consumer that waits
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::MakeClips(const ClipsOptions& clips,
                                                  const LoaderOptions& options,
                                                  const StoreOptions& store) {
  FB_RETURN_IF_ERROR(store.Validate());
  auto loader = std::make_unique<ClipsLoader>(clips, options, store);
  FB_RETURN_IF_ERROR(loader->Open().WithContext(clips.uri));
  return std::unique_ptr<Loader>(std::move(loader));
}

}  // namespace forebay
