// One run's wired path from store to consumer: the coordinator's thread and everything that lives
// on it. Made when the first batch is asked for, so that no thread lives before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/object_table.h"
#include "feed/delivery.h"
#include "feed/feeder.h"
#include "fetch/store_tier.h"
#include "forebay/status.h"
#include "order/run_order.h"
#include "order/slicing.h"
#include "store/object_store.h"
#include "sys/event_loop.h"

namespace forebay::engine {

struct PipelineOptions {
  order::RunSpec order;
  std::vector<uint64_t> first_of_source = {0};  // see feed::Sampler
  order::Slicing slicing;
  int64_t epochs = -1;
  bool external = false;           // see feed::Sampler
  uint64_t memory_bytes = 0;       // of raw and output bytes in work
  uint64_t memory_tier_bytes = 0;  // beside that; 0: nothing is kept
  double runway_s = -1;
  int decode_threads = 1;
  int64_t skip_max = 0;
};

// A copy of the coordinator's numbers.
struct PipelineNumbers {
  feed::FeedStats feed;
  fetch::FetchStats fetch;
  double runway_s = 0;
  int runway_batches = 0;
  double step_s = 0;
  std::string runway_reason;
  uint64_t budget_limit = 0, budget_used = 0, budget_peak = 0;
  uint64_t slab_bytes = 0, output_bytes = 0, memory_tier_bytes = 0;
  double decode_busy_ratio = 0;  // since the first batch was taken
};

class Pipeline {
 public:
  // `objects`: what the data set's extents point into; `stores`: see fetch::StoreTier. `dataset`
  // must outlive the pipeline.
  static Result<std::unique_ptr<Pipeline>> Make(const feed::Dataset& dataset,
                                                std::vector<fetch::StoreOfObjects> stores,
                                                std::shared_ptr<const ObjectTable> objects,
                                                const PipelineOptions& options);
  // Closes, waiting at most 30 s for what is in flight.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  feed::Delivery& delivery() { return delivery_; }
  Time Now() const { return loop_->Now(); }
  // Consumer's thread: all of these post to the coordinator.
  void HeadWaiting();
  void Taken(Duration step, Duration wait);
  // What follows is of the new position; older batches are gone from the delivery.
  void Restart(uint64_t epoch, uint64_t position);
  // See feed::Feeder; before a Restart.
  void SetReplaced(std::set<uint64_t> samples);
  // Before a Restart: the order of what follows it.
  void SetOrder(order::RunOrder order);
  // After the last Restart: what follows what was supplied since.
  void Supply(feed::SuppliedBatch batch);
  // Any thread; waits for the coordinator, at most a second (then kDeadlineExceeded).
  Result<PipelineNumbers> Numbers();

 private:
  Pipeline(const feed::Dataset& dataset, std::shared_ptr<const ObjectTable> objects,
           const PipelineOptions& options);
  void Wire(const feed::Dataset& dataset, order::RunOrder order,
            std::vector<fetch::StoreOfObjects> stores);
  PipelineNumbers Collect() const;

  PipelineOptions options_;
  std::shared_ptr<const ObjectTable> objects_;
  uint64_t generation_ = 0;  // consumer's thread
  feed::Delivery delivery_;
  std::vector<fetch::StoreOfObjects> stores_;
  std::shared_ptr<SlabPool> slabs_;
  std::shared_ptr<feed::OutputPool> outputs_;
  std::unique_ptr<sys::EventLoop> loop_;
  // Coordinator's thread from here on, in the order they are built.
  std::unique_ptr<fetch::MemoryTier> memory_tier_;
  std::unique_ptr<fetch::StoreTier> store_tier_;
  std::unique_ptr<feed::Sampler> sampler_;
  std::unique_ptr<plan::Planner> planner_;
  std::unique_ptr<feed::DecodePool> decode_;
  std::unique_ptr<feed::Feeder> feeder_;
  std::unique_ptr<fetch::Fetcher> fetcher_;
  Time first_taken_{};
  Duration busy_at_first_{};
};

}  // namespace forebay::engine
