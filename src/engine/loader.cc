#include "forebay/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/random.h"
#include "engine/opened_source.h"
#include "engine/pipeline.h"
#include "engine/pipeline_metrics.h"
#include "engine/resumed_run.h"
#include "engine/run_memory.h"
#include "engine/run_spec.h"
#include "engine/store_metrics.h"
#include "engine/store_set.h"
#include "feed/batch_layout.h"
#include "feed/mixed_dataset.h"
#include "ops/dtype.h"
#include "order/order_digest.h"
#include "sys/thread.h"

namespace forebay {
namespace {

constexpr size_t kSuppliedMost = 4096;                   // batches
constexpr uint64_t kItemShare = 4;                       // of the memory, for one item's reads
constexpr int64_t kEpochsMost = (int64_t{1} << 31) - 1;  // `_epoch` is int32

Status CheckOptions(const LoaderOptions& options) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (options.held_limit < 1) {
    return bad(fmt::format("held_limit is {}: it must be at least 1", options.held_limit));
  }
  if (std::isnan(options.runway_s) || options.runway_s > 3600) return bad("runway: at most 3600 s");
  if (options.decode_threads < 0) return bad("decode_threads is negative");
  return {};
}

// The objects of all sources, one after the other.
class JoinedObjects : public ObjectTable {
 public:
  void Add(std::shared_ptr<const ObjectTable> table) {
    firsts_.push_back(size_);
    size_ += table->size();
    tables_.push_back(std::move(table));
  }
  uint64_t size() const override { return size_; }
  Result<ObjectVersion> At(uint32_t object) const override {
    const auto after = std::ranges::upper_bound(firsts_, uint64_t{object});
    const auto i = static_cast<size_t>(after - firsts_.begin()) - 1;
    return tables_[i]->At(static_cast<uint32_t>(object - firsts_[i]));
  }

 private:
  std::vector<uint64_t> firsts_;
  std::vector<std::shared_ptr<const ObjectTable>> tables_;
  uint64_t size_ = 0;
};

class RunLoader : public Loader {
 public:
  RunLoader(const LoaderOptions& options, StoreOptions store)
      : options_(options),
        store_options_(std::move(store)),
        held_(std::make_shared<std::atomic<int64_t>>(0)) {}
  ~RunLoader() override { Close(); }

  Status Open(const std::vector<SourceOptions>& sources);

  const std::vector<ArraySpec>& arrays() const override { return specs_; }
  int64_t sample_count() const override { return static_cast<int64_t>(dataset().sample_count()); }
  int64_t batches_per_epoch() const override {
    if (plan_.external) return 0;
    return static_cast<int64_t>(order::BatchesFrom(plan_.slicing, order_->EpochSamples(epoch_), 0));
  }
  int64_t batches_left() const override;
  Result<std::optional<Batch>> Next(std::chrono::nanoseconds timeout) override;
  bool WaitReady(std::chrono::nanoseconds timeout) override;
  Status SetEpoch(int64_t epoch) override;
  LoaderState State() const override;
  Status LoadState(const LoaderState& state) override;
  Status SetWeights(const std::vector<double>& weights) override;
  Status Supply(std::span<const int64_t> samples) override;
  Status SupplyEnd() override;
  const std::vector<std::string>& scenes(size_t source) const override;
  Result<std::vector<std::string>> SampleNames(size_t source, int64_t first,
                                               int64_t count) const override;
  Status SampleTimes(size_t source, std::span<const int64_t> samples, std::span<int32_t> scene,
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
  // Over batches that are another process's.
  void PassOthers();
  void BeginWait(const engine::Pipeline& pipeline);
  Batch MakeBatch(feed::ReadyGroup group);
  Array MakeArray(size_t i, int64_t rows, std::shared_ptr<void> owner, void* data) const;
  Status WaitTimedOut(const engine::Pipeline& pipeline, std::chrono::nanoseconds timeout) const;
  void Seek(uint64_t epoch, uint64_t position);
  // Of a supplied order: the batches to come go to the pipeline, or are forgotten.
  void SupplyAll(engine::Pipeline& pipeline) const;
  void ForgetSupplied(uint64_t epoch, uint64_t position);
  Status CheckPlace(const LoaderState& state, const order::RunOrder& order) const;
  Status ChangeOrder(order::RunSpec spec);
  // The whole global batch was handed out.
  void Advance(uint64_t global_samples);
  void NotePosition(uint64_t global_samples);
  bool IsAll(const feed::ReadyGroup& group, const order::BatchSlice& slice) const;
  void AddContent(const feed::ReadyGroup& group, const order::BatchSlice& slice);
  std::string ContentText() const;

  const feed::Dataset& dataset() const { return *dataset_; }

  LoaderOptions options_;
  StoreOptions store_options_;
  std::vector<engine::OpenedSource> sources_;
  std::unique_ptr<feed::MixedDataset> mixed_;  // of several sources
  const feed::Dataset* dataset_ = nullptr;     // the only source's, or mixed_
  std::shared_ptr<const ObjectTable> objects_;
  engine::RunPlan plan_;
  LoaderState described_;  // State without the position
  std::optional<order::RunOrder> order_;
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
  // Supplied and not yet delivered; a batch without samples is an epoch's end.
  std::deque<feed::SuppliedBatch> supplied_;
  uint64_t supply_epoch_ = 0, supply_position_ = 0;  // of the next one
  std::vector<int64_t> skips_;
  std::set<uint64_t> replaced_;  // samples of all sources, as first_of_source numbers them
  order::OrderDigest digest_;
  std::vector<order::Place> places_;  // scratch of Advance
  uint64_t content_ = 0;
  bool waiting_ = false;  // the consumer has come for the next batch
  bool head_posted_ = false;
  Time came_{};  // when it came
  Time left_{};  // when it was last given one
};

Status RunLoader::Open(const std::vector<SourceOptions>& sources) {
  FB_RETURN_IF_ERROR(CheckOptions(options_));
  const ShuffleKind shuffle = options_.order.shuffle;
  FB_ASSIGN_OR_RETURN(sources_, engine::OpenSources(sources, store_options_,
                                                    shuffle == ShuffleKind::kNone ||
                                                        shuffle == ShuffleKind::kBlocks));
  FB_ASSIGN_OR_RETURN(plan_, engine::PlanRun(sources_, sources, options_.order, options_.place));
  FB_ASSIGN_OR_RETURN(order_, order::RunOrder::Make(plan_.order));
  std::vector<feed::MixedDataset::Part> parts;
  auto objects = std::make_shared<JoinedObjects>();
  for (engine::OpenedSource& source : sources_) {
    parts.push_back({source.name, source.dataset.get(), static_cast<uint32_t>(objects->size())});
    objects->Add(source.objects);
  }
  if (objects->size() >> 32 != 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} objects in one run: at most 2^32", objects->size()));
  }
  objects_ = std::move(objects);
  dataset_ = sources_[0].dataset.get();
  if (sources_.size() > 1) {
    FB_ASSIGN_OR_RETURN(mixed_, feed::MixedDataset::Make(std::move(parts)));
    dataset_ = mixed_.get();
  }
  described_ = engine::DescribeRun(sources_, options_.order, plan_.order);
  SetSpecs();
  return SetBudget();
}

Status RunLoader::SetBudget() {
  FB_ASSIGN_OR_RETURN(const engine::RunMemory memory,
                      engine::PlanMemory(options_, plan_, sources_, dataset()));
  pipeline_options_.memory_tier_bytes = memory.kept;
  for (const engine::OpenedSource& source : sources_) {
    if (source.tables != nullptr) {
      source.tables->KeepDecoded(memory.decoded);
      source.tables->set_item_bytes(memory.in_work / kItemShare);
      if (options_.order.shuffle == ShuffleKind::kNone) source.tables->ExpectInOrder();
    }
    if (source.records != nullptr) {
      source.records->kept().SetLimit(memory.prepared);
      source.records->ExpectPieces(memory.pieces);
    }
  }
  pipeline_options_.memory_bytes = memory.in_work;
  pipeline_options_.order = plan_.order;
  pipeline_options_.first_of_source = plan_.first_of_source;
  pipeline_options_.slicing = plan_.slicing;
  pipeline_options_.epochs = options_.epochs;
  pipeline_options_.external = plan_.external;
  pipeline_options_.runway_s = options_.runway_s < 0 ? -1 : options_.runway_s;
  pipeline_options_.decode_threads =
      options_.decode_threads > 0 ? options_.decode_threads : std::max(1, sys::CpuCount() - 1);
  pipeline_options_.skip_max = options_.skip_max;
  return {};
}

void RunLoader::SetSpecs() {
  const int64_t batch = options_.place.batch_size;
  for (const feed::SampleArray& array : dataset().arrays()) {
    if (array.ragged()) {
      specs_.push_back({array.name, array.dtype, {-1}});
      specs_.push_back({array.offsets, "int64", {batch + 1}});
      continue;
    }
    ArraySpec spec{array.name, array.dtype, {batch}};
    spec.shape.insert(spec.shape.end(), array.shape.begin(), array.shape.end());
    specs_.push_back(std::move(spec));
  }
  specs_.push_back({"_sample", "int64", {batch}});
  specs_.push_back({"_epoch", "int32", {batch}});
  if (sources_.size() > 1) specs_.push_back({"_source", "int32", {batch}});
  if (options_.order.tail == TailRule::kPad) specs_.push_back({"_pad", "bool", {batch}});
}

Result<std::shared_ptr<engine::Pipeline>> RunLoader::MakePipeline() {
  FB_ASSIGN_OR_RETURN(auto stores, engine::StoreSet::Make(store_options_));
  std::vector<fetch::StoreOfObjects> of_objects;
  uint32_t first = 0;
  for (const engine::OpenedSource& source : sources_) {
    FB_ASSIGN_OR_RETURN(auto store, stores->StoreFor(source.root));
    of_objects.push_back({first, std::move(store)});
    first += static_cast<uint32_t>(source.objects->size());
  }
  FB_ASSIGN_OR_RETURN(auto pipeline, engine::Pipeline::Make(dataset(), std::move(of_objects),
                                                            objects_, pipeline_options_));
  const MutexLock lock(mutex_);
  stores_ = std::move(stores);
  return std::shared_ptr<engine::Pipeline>(std::move(pipeline));
}

Result<std::shared_ptr<engine::Pipeline>> RunLoader::Start() {
  if (auto running = pipeline()) return running;
  FB_RETURN_IF_ERROR(failed_);
  Result<std::shared_ptr<engine::Pipeline>> made = MakePipeline();
  if (!made.ok()) {
    failed_ = made.status();
    return made;
  }
  if (!replaced_.empty()) (*made)->SetReplaced(replaced_);
  if (epoch_ > 0 || position_ > 0) (*made)->Restart(epoch_, position_);
  SupplyAll(**made);
  const MutexLock lock(mutex_);
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  pipeline_ = *made;
  return made;
}

int64_t RunLoader::batches_left() const {
  if (AtEnd()) return 0;
  if (!plan_.external) {
    return static_cast<int64_t>(
        order::BatchesFrom(plan_.slicing, order_->EpochSamples(epoch_), position_));
  }
  const auto end = std::ranges::find_if(
      supplied_, [](const feed::SuppliedBatch& batch) { return batch.samples.empty(); });
  return end - supplied_.begin();
}

bool RunLoader::AtEnd() const {
  return options_.epochs >= 0 && epoch_ >= static_cast<uint64_t>(options_.epochs);
}

std::optional<order::BatchSlice> RunLoader::Slice() const {
  if (!plan_.external) {
    return order::SliceAt(plan_.slicing, order_->EpochSamples(epoch_), position_);
  }
  if (supplied_.empty() || supplied_.front().samples.empty()) return std::nullopt;
  const uint64_t rows = supplied_.front().samples.size();
  return order::BatchSlice{position_, rows, 0, rows};
}

void RunLoader::PassOthers() {
  if (plan_.slicing.stride == 1) return;
  while (const auto slice = Slice()) {
    if (order::TakesBatchAt(plan_.slicing, position_)) return;
    Advance(slice->global_samples);
  }
}

void RunLoader::BeginWait(const engine::Pipeline& pipeline) {
  if (waiting_) return;
  waiting_ = true;
  head_posted_ = false;
  came_ = pipeline.Now();
  if (left_ == Time{}) left_ = came_;
}

bool RunLoader::WaitReady(std::chrono::nanoseconds timeout) {
  if (closed_ || AtEnd()) return true;
  PassOthers();
  const auto slice = Slice();
  if (!slice || slice->rows == 0) return true;
  const auto pipeline = Start();
  if (!pipeline.ok()) return true;
  if (!waiting_ && *held_ >= options_.held_limit) return true;  // Next says so
  BeginWait(**pipeline);
  if ((*pipeline)->delivery().WaitUntil(came_)) return true;
  if (!std::exchange(head_posted_, true)) (*pipeline)->HeadWaiting();
  return (*pipeline)->delivery().WaitUntil((*pipeline)->Now() + timeout);
}

Result<std::optional<Batch>> RunLoader::Next(std::chrono::nanoseconds timeout) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (AtEnd()) return std::optional<Batch>();
  if (plan_.external && supplied_.empty()) {
    return Status(Code::kInvalidArgument, "the order is external, and no batch was supplied");
  }
  PassOthers();
  const auto slice = Slice();
  if (!slice) {
    if (plan_.external) supplied_.pop_front();
    ++epoch_;
    position_ = 0;
    step_ = 0;
    skips_.clear();
    return std::optional<Batch>();
  }
  if (slice->rows == 0) {  // of a ragged tail, nothing is this rank's
    feed::ReadyGroup none;
    none.epoch = epoch_;
    Advance(slice->global_samples);
    return std::optional<Batch>(MakeBatch(std::move(none)));
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
  if (options_.content_digest) AddContent(*group, *slice);
  if (IsAll(*group, *slice)) {
    digest_.AddEach(std::span(group->samples).first(slice->global_samples), epoch_);
    NotePosition(slice->global_samples);
  } else {
    Advance(group->global_samples);
  }
  for (const uint64_t skip : group->skipped) skips_.push_back(static_cast<int64_t>(skip));
  replaced_.insert(group->replaced.begin(), group->replaced.end());
  return std::optional<Batch>(MakeBatch(*std::move(group)));
}

// Whether the group's samples are the whole global batch's, as the order has them.
bool RunLoader::IsAll(const feed::ReadyGroup& group, const order::BatchSlice& slice) const {
  return !plan_.external && order_->natural() && slice.offset == 0 &&
         slice.rows >= slice.global_samples && group.skipped.empty();
}

void RunLoader::Advance(uint64_t global_samples) {
  if (plan_.external) {
    for (const uint64_t sample : supplied_.front().samples) digest_.Add({0, sample, epoch_});
    supplied_.pop_front();
  } else {
    constexpr uint64_t kAtOnce = 4096;
    for (uint64_t done = 0; done < global_samples; done += places_.size()) {
      places_.resize(std::min(kAtOnce, global_samples - done));
      order_->AtEach(epoch_, position_ + done, places_);
      for (const order::Place& place : places_) digest_.Add(place);
    }
  }
  NotePosition(global_samples);
}

void RunLoader::NotePosition(uint64_t global_samples) {
  position_ += global_samples;
  ++step_;
  if (options_.digest_log_steps > 0 && step_ % options_.digest_log_steps == 0) {
    Log(LogLevel::kInfo,
        fmt::format("epoch {} step {} position {}: order {}{}{}", epoch_, step_, position_,
                    digest_.ToHex(), options_.content_digest ? " content of this rank " : "",
                    options_.content_digest ? ContentText() : ""));
  }
}

// What was delivered at which place; a sum, so that the ranks' parts may be added up.
void RunLoader::AddContent(const feed::ReadyGroup& group, const order::BatchSlice& slice) {
  const uint64_t samples = plan_.external ? ~uint64_t{0} : order_->EpochSamples(epoch_);
  for (uint64_t row = 0; row < group.rows; ++row) {
    const order::Row place = order::RowOf(slice, samples, row);
    if (place.pad) continue;
    uint64_t key = DeriveKey(DeriveKey(HashName("content/v1"), epoch_), place.position);
    for (size_t i = 0; i < group.layout->arrays(); ++i) {
      const Hash128 hash = HashBytes(group.layout->RowOf(group.block.get(), i, row));
      key = DeriveKey(DeriveKey(key, hash.low), hash.high);
    }
    content_ += key;
  }
}

std::string RunLoader::ContentText() const {
  return options_.content_digest ? fmt::format("{:016x}", content_) : "";
}

Status RunLoader::WaitTimedOut(const engine::Pipeline& pipeline,
                               std::chrono::nanoseconds timeout) const {
  return Status(
      Code::kDeadlineExceeded,
      fmt::format("batch {} of epoch {} (samples from position {}) is not ready after "
                  "{:.1f} s in this wait, {:.1f} s in all; {}",
                  step_, epoch_, position_, std::chrono::duration<double>(timeout).count(),
                  std::chrono::duration<double>(pipeline.Now() - came_).count(), RunwayReason()));
}

Array RunLoader::MakeArray(size_t i, int64_t rows, std::shared_ptr<void> owner, void* data) const {
  Array array{
      .spec = &specs_[i], .rows = rows, .owner = std::move(owner), .data = data, .bytes = 0};
  return array;
}

Batch RunLoader::MakeBatch(feed::ReadyGroup group) {
  // Counts as held until the last array is gone.
  struct Held {
    std::shared_ptr<std::byte> block;
    std::shared_ptr<const feed::BatchLayout> layout;
    std::shared_ptr<std::atomic<int64_t>> count;
    std::vector<std::vector<int64_t>> offsets;  // of each ragged array
    std::vector<int64_t> samples;
    std::vector<int32_t> epochs;
    std::vector<int32_t> sources;
    std::vector<uint8_t> pads;
    ~Held() { --*count; }
  };
  ++*held_;
  auto held = std::make_shared<Held>();
  held->block = std::move(group.block);
  held->count = held_;
  held->samples = std::move(group.samples);
  held->epochs.assign(group.rows, static_cast<int32_t>(group.epoch));
  held->sources = std::move(group.sources);
  held->pads.assign(group.pads.begin(), group.pads.end());
  // An empty batch has places too: not every framework takes null.
  held->samples.reserve(1);
  held->epochs.reserve(1);
  held->sources.reserve(1);
  held->pads.reserve(1);
  const auto rows = static_cast<int64_t>(group.rows);
  held->layout = group.layout ? std::move(group.layout)
                              : std::make_shared<const feed::BatchLayout>(dataset().arrays(), 0);
  Batch batch{.arrays = {}, .step = step_ - 1, .epoch = static_cast<int64_t>(group.epoch)};
  size_t i = 0;
  for (size_t k = 0; k < dataset().arrays().size(); ++k) {
    const bool ragged = dataset().arrays()[k].ragged();
    const auto bytes = static_cast<int64_t>(held->layout->BytesOf(k));
    std::byte* first = held->block.get() + held->layout->FirstOf(k);
    const int64_t each = ragged ? ops::BytesOf(specs_[i].dtype) : 1;
    batch.arrays.push_back(MakeArray(i++, ragged ? bytes / each : rows, held, first));
    batch.arrays.back().bytes = held->layout->BytesOf(k);
    if (!ragged) continue;
    std::vector<int64_t>& offsets = held->offsets.emplace_back(held->layout->OffsetsOf(k));
    for (int64_t& offset : offsets) offset /= each;  // of elements
    batch.arrays.push_back(MakeArray(i++, rows + 1, held, offsets.data()));
    batch.arrays.back().bytes = offsets.size() * sizeof(int64_t);
  }
  batch.arrays.push_back(MakeArray(i++, rows, held, held->samples.data()));
  batch.arrays.back().bytes = group.rows * sizeof(int64_t);
  batch.arrays.push_back(MakeArray(i++, rows, held, held->epochs.data()));
  batch.arrays.back().bytes = group.rows * sizeof(int32_t);
  if (sources_.size() > 1) {
    batch.arrays.push_back(MakeArray(i++, rows, held, held->sources.data()));
    batch.arrays.back().bytes = group.rows * sizeof(int32_t);
  }
  if (i < specs_.size()) {
    batch.arrays.push_back(MakeArray(i, rows, held, held->pads.data()));
    batch.arrays.back().bytes = group.rows;
  }
  return batch;
}

void RunLoader::Seek(uint64_t epoch, uint64_t position) {
  epoch_ = epoch;
  position_ = position;
  step_ = static_cast<int64_t>(position / (plan_.slicing.batch_size * plan_.slicing.world_size));
  waiting_ = false;
  left_ = Time{};
  if (const auto running = pipeline()) {
    running->Restart(epoch, position);
    SupplyAll(*running);
  }
}

Status RunLoader::SetEpoch(int64_t epoch) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (epoch < 0) return Status(Code::kInvalidArgument, fmt::format("epoch {} is negative", epoch));
  const auto wanted = static_cast<uint64_t>(epoch);
  if (wanted == epoch_ && position_ == 0 && supplied_.empty()) return {};  // fetched ahead: stays
  skips_.clear();
  ForgetSupplied(wanted, 0);
  Seek(wanted, 0);
  return {};
}

LoaderState RunLoader::State() const {
  LoaderState state = described_;
  state.epoch = static_cast<int64_t>(epoch_);
  state.position = static_cast<int64_t>(position_);
  state.digest = digest_.ToHex();
  for (const order::MixturePiece& piece : plan_.order.mixture) {
    state.mixture.push_back({piece.start, piece.weights});
  }
  state.skips = skips_;
  state.replaced = engine::InSources(replaced_, plan_);
  state.content = ContentText();
  return state;
}

Status RunLoader::CheckPlace(const LoaderState& state, const order::RunOrder& order) const {
  const bool past =
      state.epoch > options_.epochs || (state.epoch == options_.epochs && state.position > 0);
  if (options_.epochs >= 0 && past) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the state's epoch {}, position {} lies beyond this loader's {} "
                              "epochs",
                              state.epoch, state.position, options_.epochs));
  }
  const bool epoch_is_one = state.epoch >= 0 && state.epoch <= kEpochsMost;
  const uint64_t samples =
      order.EpochSamples(epoch_is_one ? static_cast<uint64_t>(state.epoch) : 0);
  const bool position_is_one =
      state.position >= 0 && (plan_.external || static_cast<uint64_t>(state.position) <= samples);
  if (epoch_is_one && position_is_one) {
    return {};
  }
  return Status(Code::kInvalidArgument,
                fmt::format("epoch {}, position {} are no place in {} samples", state.epoch,
                            state.position, samples));
}

Status RunLoader::LoadState(const LoaderState& state) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  FB_ASSIGN_OR_RETURN(order::RunSpec spec,
                      engine::SpecOfState(sources_, options_.order, plan_.order, state));
  FB_ASSIGN_OR_RETURN(order::RunOrder order, order::RunOrder::Make(spec));
  FB_RETURN_IF_ERROR(CheckPlace(state, order));
  FB_ASSIGN_OR_RETURN(std::set<uint64_t> replaced, engine::ReplacedOf(state, sources_, plan_));
  engine::GrowSources(sources_, state, order, &spec);
  FB_ASSIGN_OR_RETURN(digest_, order::OrderDigest::From(state.digest));
  skips_ = state.skips;
  replaced_ = std::move(replaced);
  if (const auto running = pipeline()) running->SetReplaced(replaced_);
  content_ = 0;  // the state may be another rank's, or every rank's
  epoch_ = static_cast<uint64_t>(state.epoch);
  position_ = static_cast<uint64_t>(state.position);
  ForgetSupplied(epoch_, position_);
  return ChangeOrder(std::move(spec));
}

Status RunLoader::Supply(std::span<const int64_t> samples) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (!plan_.external) return bad("this loader's order is its own: nothing is supplied");
  if (samples.empty() || samples.size() > plan_.slicing.batch_size) {
    return bad(fmt::format("a batch of {} samples: it must have 1 to {}", samples.size(),
                           plan_.slicing.batch_size));
  }
  if (supplied_.size() >= kSuppliedMost) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} supplied batches are waiting", supplied_.size()));
  }
  feed::SuppliedBatch batch{supply_epoch_, supply_position_, {}};
  for (const int64_t sample : samples) {
    if (sample < 0 || sample >= sample_count()) {
      return bad(fmt::format("sample {} is not in [0, {})", sample, sample_count()));
    }
    batch.samples.push_back(static_cast<uint64_t>(sample));
  }
  supply_position_ += batch.samples.size();
  supplied_.push_back(std::move(batch));
  if (const auto running = pipeline()) running->Supply(supplied_.back());
  return {};
}

Status RunLoader::SupplyEnd() {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (!plan_.external) {
    return Status(Code::kInvalidArgument, "this loader's order is its own: it knows its end");
  }
  supplied_.push_back({supply_epoch_++, supply_position_, {}});
  supply_position_ = 0;
  return {};
}

void RunLoader::SupplyAll(engine::Pipeline& pipeline) const {
  for (const feed::SuppliedBatch& batch : supplied_) {
    if (!batch.samples.empty()) pipeline.Supply(batch);
  }
}

void RunLoader::ForgetSupplied(uint64_t epoch, uint64_t position) {
  supplied_.clear();
  supply_epoch_ = epoch;
  supply_position_ = position;
}

// Goes on from where it is in another order.
Status RunLoader::ChangeOrder(order::RunSpec spec) {
  FB_ASSIGN_OR_RETURN(order_, order::RunOrder::Make(spec));
  if (const auto running = pipeline()) {
    FB_ASSIGN_OR_RETURN(order::RunOrder order, order::RunOrder::Make(spec));
    running->SetOrder(std::move(order));
  }
  described_ = engine::DescribeRun(sources_, options_.order, spec);
  plan_.order = pipeline_options_.order = std::move(spec);
  Seek(epoch_, position_);
  return {};
}

Status RunLoader::SetWeights(const std::vector<double>& weights) {
  if (closed_) return Status(Code::kCancelled, "the loader is closed");
  if (weights.size() != sources_.size() || sources_.size() < 2) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} weights for {} sources", weights.size(), sources_.size()));
  }
  FB_ASSIGN_OR_RETURN(auto units, engine::WeightsOf(weights));
  order::RunSpec spec = plan_.order;
  const uint64_t here = epoch_ * order_->EpochSamples(epoch_) + position_;
  // What was to come later is overruled.
  std::erase_if(spec.mixture, [&](const auto& piece) { return piece.start >= here; });
  spec.mixture.push_back({here, std::move(units)});
  return ChangeOrder(std::move(spec));
}

const std::vector<std::string>& RunLoader::scenes(size_t source) const {
  static const std::vector<std::string> none;
  return source < sources_.size() && sources_[source].clips != nullptr
             ? sources_[source].clips->scenes()
             : none;
}

Result<std::vector<std::string>> RunLoader::SampleNames(size_t source, int64_t first,
                                                        int64_t count) const {
  const catalog::FilesCatalog* files =
      source < sources_.size() ? sources_[source].files.get() : nullptr;
  if (files == nullptr) {
    return Status(Code::kInvalidArgument, fmt::format("source {} has no plain objects", source));
  }
  const auto end = static_cast<int64_t>(files->count());
  if (first < 0 || count < 0 || first > end || count > end - first) {
    return Status(Code::kInvalidArgument,
                  fmt::format("samples {} and {} on are not in [0, {})", first, count, end));
  }
  std::vector<std::string> names;
  Status status;
  for (int64_t i = 0; i < count && status.ok(); ++i) {
    Result<catalog::FileEntry> entry = files->At(static_cast<uint64_t>(first + i));
    status = entry.status();
    if (status.ok()) names.push_back(std::move(entry->key));
  }
  files->Rest();  // a loader that was not started has no threads
  FB_RETURN_IF_ERROR(status);
  return names;
}

Status RunLoader::SampleTimes(size_t source, std::span<const int64_t> samples,
                              std::span<int32_t> scene, std::span<double> times,
                              std::span<double> half_frame) const {
  if (source >= sources_.size() || sources_[source].clips == nullptr) {
    return Status(Code::kInvalidArgument, fmt::format("source {} has no clips", source));
  }
  const feed::VideoClips& clips = *sources_[source].clips;
  const size_t frames = clips.frames();
  if (scene.size() != samples.size() || half_frame.size() != samples.size() ||
      times.size() != samples.size() * frames) {
    return Status(Code::kInvalidArgument, "the outputs do not fit the samples");
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto sample = static_cast<uint64_t>(samples[i]);
    if (samples[i] < 0 || sample >= clips.sample_count()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("sample {} is not in [0, {})", samples[i], clips.sample_count()));
    }
    const feed::VideoClips::Times one = clips.TimesOf(sample);
    scene[i] = static_cast<int32_t>(one.scene);
    half_frame[i] = one.half_frame;
    std::ranges::copy(one.seconds, times.begin() + static_cast<std::ptrdiff_t>(i * frames));
  }
  return {};
}

std::string RunLoader::RunwayReason() const {
  const auto running = pipeline();
  if (!running) return "nothing is being fetched";
  const auto numbers = running->Numbers();
  return numbers.ok() ? numbers->runway_reason : numbers.status().ToString();
}

RunLoader::Numbers RunLoader::LatestNumbers() const {
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
    last_numbers_.store = {};
    for (const auto& [root, one] : counters) last_numbers_.store.Add(one);
  }
  const MutexLock lock(mutex_);
  return last_numbers_;
}

std::map<std::string, double> RunLoader::Metrics() const {
  const Numbers latest = LatestNumbers();
  std::map<std::string, double> metrics;
  engine::AddStoreMetrics(latest.store, &metrics);
  engine::AddPipelineMetrics(latest.pipeline, &metrics);
  metrics["forebay_memory_bytes{kind=\"limit\"}"] = static_cast<double>(options_.memory_bytes);
  engine::AddSourceMetrics(sources_, &metrics);
  return metrics;
}

void RunLoader::Close() {
  (void)LatestNumbers();                     // what Metrics says from now on
  std::shared_ptr<engine::StoreSet> stores;  // both taken down after the lock is gone
  std::shared_ptr<engine::Pipeline> last;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    last.swap(pipeline_);
    stores.swap(stores_);
    if (last) last->delivery().Close();  // wakes a consumer that waits
  }
  last.reset();
  for (const engine::OpenedSource& source : sources_) {
    if (source.files) source.files->Rest();
  }
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::Make(const std::vector<SourceOptions>& sources,
                                             const LoaderOptions& options,
                                             const StoreOptions& store) {
  auto loader = std::make_unique<RunLoader>(options, store);
  FB_RETURN_IF_ERROR(loader->Open(sources));
  return std::unique_ptr<Loader>(std::move(loader));
}

}  // namespace forebay
