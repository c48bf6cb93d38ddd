// The training sampler: order -> items. A schedule source whose position is its whole state.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "feed/dataset.h"
#include "order/order.h"
#include "plan/schedule_source.h"

namespace forebay::feed {

// What the sampler attaches to an item.
struct SampleWork : plan::Work {
  uint64_t sample = 0;
  uint64_t epoch = 0;
  uint64_t position = 0;  // of the sample in the epoch, over all ranks
  bool pad = false;
  uint64_t row = 0;             // in the batch
  uint64_t rows = 0;            // of the batch
  uint64_t batch_position = 0;  // of the whole global batch
  uint64_t batch_samples = 0;   // what the position advances by
  uint64_t attempt = 0;         // > 0: a substitute for a bad sample
  SamplePlan plan;
  Status plan_status;  // not OK: the sample cannot even be planned
};

class Sampler : public plan::ScheduleSource {
 public:
  struct Options {
    order::OrderSpec order;
    order::Slicing slicing;
    int64_t epochs = -1;  // -1: no end
    uint64_t gap_bytes = 0;
  };
  Sampler(const Dataset& dataset, const Options& options);

  // Goes on from this position; the number of epochs counts from epoch 0.
  void Seek(uint64_t epoch, uint64_t position);
  Result<std::optional<plan::WorkItem>> Next() override;
  void set_gap_bytes(uint64_t gap_bytes) { options_.gap_bytes = gap_bytes; }

  // The item of the same place with substitute number `attempt`.
  plan::WorkItem Substitute(const SampleWork& bad) const;
  // When the sample of this work comes next: its position in the next epoch, as a number that
  // grows with time.
  uint64_t NextUse(const SampleWork& work);

 private:
  plan::WorkItem Make(const order::BatchSlice& slice, uint64_t row) const;
  void Plan(SampleWork& work, plan::WorkItem& item) const;

  const Dataset& dataset_;
  Options options_;
  std::optional<order::EpochOrder> order_;
  std::optional<order::EpochOrder> next_order_;
  uint64_t next_order_epoch_ = 0;
  uint64_t epoch_ = 0;
  uint64_t position_ = 0;
  std::optional<order::BatchSlice> slice_;
  uint64_t row_ = 0;
};

}  // namespace forebay::feed
