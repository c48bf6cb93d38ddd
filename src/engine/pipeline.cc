#include "engine/pipeline.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/log.h"

namespace forebay::engine {
namespace {

constexpr uint64_t kItemsMax = 4096;      // slots of the ring
constexpr uint64_t kTogetherMax = 65536;  // samples ahead, where batches are few items
constexpr uint64_t kBatchesMax = 64;      // the deepest runway
constexpr uint64_t kEpochMost = (uint64_t{1} << 31) - 1;
// Of the memory, what is kept though all of it may be in use: to and fro costs page faults.
constexpr uint64_t kIdleShare = 20;
constexpr auto kCloseTimeout = std::chrono::seconds(30);
constexpr auto kNumbersTimeout = std::chrono::seconds(1);

// Whoever still works with it may go on: it is never freed.
template <class T>
void Abandon(std::unique_ptr<T>& owned) {
  [[maybe_unused]] const T* left = owned.release();
}

}  // namespace

Pipeline::Pipeline(const feed::Dataset&, std::shared_ptr<const ObjectTable> objects,
                   const PipelineOptions& options)
    : options_(options),
      objects_(std::move(objects)),
      slabs_(SlabPool::Make(SlabPool::Pages::kLarge)),
      outputs_(feed::OutputPool::Make(options.memory_bytes)) {}

Result<std::unique_ptr<Pipeline>> Pipeline::Make(const feed::Dataset& dataset,
                                                 std::vector<fetch::StoreOfObjects> stores,
                                                 std::shared_ptr<const ObjectTable> objects,
                                                 const PipelineOptions& options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(dataset, std::move(objects), options));
  FB_ASSIGN_OR_RETURN(order::RunOrder order, order::RunOrder::Make(options.order));
  FB_ASSIGN_OR_RETURN(pipeline->loop_, sys::EventLoop::Make("fb-coordinator"));
  std::promise<void> wired;
  pipeline->loop_->Post([&] {
    pipeline->Wire(dataset, std::move(order), std::move(stores));
    wired.set_value();
  });
  wired.get_future().wait();
  return pipeline;
}

void Pipeline::Wire(const feed::Dataset& dataset, order::RunOrder order,
                    std::vector<fetch::StoreOfObjects> stores) {
  stores_ = stores;
  uint64_t batch = options_.slicing.batch_size;
  // No batch has more rows than the largest epoch, and sources never shrink.
  if (!options_.external) {
    batch = std::clamp(order.EpochSamples(kEpochMost), uint64_t{1}, batch);
  }
  // Where samples are planned together a batch is few items, mostly; if not, the ring bounds it.
  const uint64_t samples_max = dataset.plans_together() ? kTogetherMax : kItemsMax;
  const auto depth_max =
      static_cast<int>(std::clamp(samples_max / batch, uint64_t{2}, kBatchesMax));
  std::vector<fetch::Tier*> tiers;
  if (options_.memory_tier_bytes > 0) {
    memory_tier_ = std::make_unique<fetch::MemoryTier>(options_.memory_tier_bytes, *loop_);
    tiers.push_back(memory_tier_.get());
  }
  store_tier_ = std::make_unique<fetch::StoreTier>(std::move(stores), objects_, *loop_);
  tiers.push_back(store_tier_.get());
  sampler_ = std::make_unique<feed::Sampler>(
      dataset, std::move(order),
      feed::Sampler::Options{.first_of_source = options_.first_of_source,
                             .slicing = options_.slicing,
                             .epochs = options_.epochs,
                             .external = options_.external,
                             .gap_bytes = fetch::CoalesceCost{}.GapBytes(),
                             .seed = options_.order.seed});
  planner_ = std::make_unique<plan::Planner>(
      *sampler_, plan::RunwayOptions{.fixed_s = options_.runway_s,
                                     .depth_max = depth_max,
                                     .decode_threads = options_.decode_threads});
  decode_ = feed::MakeDecodePool(dataset, options_.decode_threads, *loop_);
  feed::Feeder::Options feed_options;
  feed_options.memory_bytes = options_.memory_bytes;
  const uint64_t items = std::max<uint64_t>(dataset.ItemsMax(batch), 1);
  feed_options.capacity = std::min(items * (static_cast<uint64_t>(depth_max) + 1),
                                   std::max(kItemsMax, 2 * items) + items);
  feed_options.skip_max = options_.skip_max;
  feed_options.keep_idle = [this](uint64_t bytes) {
    feed::TrimIdle(*outputs_, *slabs_, bytes + options_.memory_bytes / kIdleShare);
  };
  feeder_ = std::make_unique<feed::Feeder>(
      dataset, *sampler_, *planner_, *decode_, outputs_, *loop_, feed_options,
      [this](feed::ReadyGroup group) { delivery_.Push(std::move(group)); });
  fetcher_ = std::make_unique<fetch::Fetcher>(
      slabs_, tiers, feeder_.get(), fetch::Fetcher::Options{.share = dataset.shares_extents()});
  feeder_->Attach(fetcher_.get(), memory_tier_.get());
}

Pipeline::~Pipeline() {
  delivery_.Close();
  outputs_->KeepNone();
  if (!loop_) return;
  auto closed = std::make_shared<std::promise<void>>();
  auto done = closed->get_future();
  loop_->Post([this, closed] { feeder_->Close([closed] { closed->set_value(); }); });
  if (done.wait_for(kCloseTimeout) != std::future_status::ready) {
    // Something below never completed. Its buffers must not be freed under it.
    Log(LogLevel::kError,
        "a loader's requests did not end within 30 s of closing; its memory stays");
    Abandon(loop_);
    Abandon(fetcher_);
    Abandon(feeder_);
    Abandon(decode_);
    Abandon(planner_);
    Abandon(sampler_);
    Abandon(store_tier_);
    Abandon(memory_tier_);
    return;
  }
  loop_->Stop();
  fetcher_.reset();
  feeder_.reset();
  decode_.reset();
  store_tier_.reset();
  // What the store's thread still holds of finished reads goes before the store may.
  auto flushed = std::make_shared<std::promise<void>>();
  auto flush = flushed->get_future();
  stores_.front().store->executor().Post([flushed = std::move(flushed)] { flushed->set_value(); });
  flush.wait_for(kCloseTimeout);
}

void Pipeline::HeadWaiting() {
  loop_->Post([this, generation = generation_] { feeder_->HeadWaiting(generation); });
}

void Pipeline::Taken(Duration step, Duration wait) {
  loop_->Post([this, step, wait, generation = generation_] {
    if (first_taken_ == Time{}) {
      first_taken_ = loop_->Now();
      busy_at_first_ = feeder_->stats().decode_busy;
    }
    feeder_->Taken(generation, step, wait);
  });
}

void Pipeline::SetReplaced(std::set<uint64_t> samples) {
  loop_->Post(
      [this, samples = std::move(samples)]() mutable { feeder_->SetReplaced(std::move(samples)); });
}

void Pipeline::SetOrder(order::RunOrder order) {
  loop_->Post(
      [this, order = std::move(order)]() mutable { sampler_->set_order(std::move(order)); });
}

void Pipeline::Supply(feed::SuppliedBatch batch) {
  loop_->Post([this, batch = std::move(batch)]() mutable {
    sampler_->Supply(std::move(batch));
    planner_->SourceGrew();
    feeder_->Pump();
  });
}

void Pipeline::Restart(uint64_t epoch, uint64_t position) {
  delivery_.Reset(++generation_);
  loop_->Post([this, epoch, position, generation = generation_] {
    feeder_->Restart(generation, epoch, position);
  });
}

PipelineNumbers Pipeline::Collect() const {
  PipelineNumbers n;
  n.feed = feeder_->stats();
  n.fetch = fetcher_->stats();
  const plan::Runway& runway = planner_->runway();
  n.runway_s = runway.runway_s();
  n.runway_batches = runway.depth();
  n.step_s = runway.step_s();
  n.runway_reason = runway.Explain();
  n.budget_limit = feeder_->budget().limit();
  n.budget_used = feeder_->budget().used();
  n.budget_peak = feeder_->budget().peak();
  n.slab_bytes = slabs_->slabs_mapped() * kSlabBytes;
  n.output_bytes = outputs_->mapped_bytes();
  n.memory_tier_bytes = memory_tier_ ? memory_tier_->used_bytes() : 0;
  const double elapsed = std::chrono::duration<double>(loop_->Now() - first_taken_).count();
  if (first_taken_ != Time{} && elapsed > 0) {
    const auto busy = std::chrono::duration<double>(n.feed.decode_busy - busy_at_first_).count();
    n.decode_busy_ratio = std::min(1.0, busy / elapsed / decode_->threads());
  }
  return n;
}

Result<PipelineNumbers> Pipeline::Numbers() {
  auto promise = std::make_shared<std::promise<PipelineNumbers>>();
  auto future = promise->get_future();
  loop_->Post([this, promise = std::move(promise)] { promise->set_value(Collect()); });
  if (future.wait_for(kNumbersTimeout) != std::future_status::ready) {
    return Status(Code::kDeadlineExceeded, "the coordinator did not answer within a second");
  }
  return future.get();
}

}  // namespace forebay::engine
