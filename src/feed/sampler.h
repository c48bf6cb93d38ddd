// The training sampler: order -> items. A schedule source whose position is its whole state.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "feed/batch_layout.h"
#include "feed/dataset.h"
#include "feed/sample_rows.h"
#include "order/run_order.h"
#include "order/slicing.h"
#include "plan/schedule_source.h"

namespace forebay::feed {

// What the sampler attaches to an item: a sample, or several that are planned together.
struct SampleWork : plan::Work {
  SampleRows rows;  // at least one
  uint64_t epoch = 0;
  uint64_t batch_rows = 0;                    // of the batch
  uint64_t batch_position = 0;                // of the whole global batch
  uint64_t batch_samples = 0;                 // what the position advances by
  std::shared_ptr<const BatchLayout> layout;  // of the batch, as it was planned
  SamplePlan plan;
  Status plan_status;       // not OK: a sample cannot even be planned
  size_t plan_bad_row = 0;  // of `rows`
};

// A batch of an order that somebody else decides.
struct SuppliedBatch {
  uint64_t epoch = 0;
  uint64_t position = 0;  // of its first sample in the epoch
  std::vector<uint64_t> samples;
};

class Sampler : public plan::ScheduleSource {
 public:
  struct Options {
    // Sample s of source i is sample first_of_source[i] + s of the data set.
    std::vector<uint64_t> first_of_source = {0};
    order::Slicing slicing;
    int64_t epochs = -1;    // -1: no end
    bool external = false;  // the schedule is what Supply says, and over until it says more
    uint64_t gap_bytes = 0;
    uint64_t seed = 0;  // of what is random in a sample
  };
  Sampler(const Dataset& dataset, order::RunOrder order, Options options);

  // Goes on from this position; the number of epochs counts from epoch 0. What was supplied is
  // forgotten.
  void Seek(uint64_t epoch, uint64_t position);
  Result<std::optional<plan::WorkItem>> Next() override;
  void Supply(SuppliedBatch batch) { supplied_.push_back(std::move(batch)); }
  // Seek comes next.
  void set_order(order::RunOrder order) { order_ = std::move(order); }
  void set_gap_bytes(uint64_t gap_bytes) { options_.gap_bytes = gap_bytes; }

  // The same item with another sample in its row `bad_row`: the next substitute.
  plan::WorkItem Substitute(const SampleWork& bad, size_t bad_row);
  // When the bytes of this work are used next, as a number that grows with time.
  uint64_t NextUse(const SampleWork& work);
  uint64_t seed() const { return options_.seed; }

 private:
  bool NextSlice();
  void OpenBatch(uint64_t rows);
  void AnnounceAhead();
  std::shared_ptr<SampleWork> NewWork() const;  // of this batch, without rows
  SampleRow PlaceRow(uint64_t row);
  std::vector<SampleRow> PlaceRows(uint64_t rows);
  std::shared_ptr<const Stretch> PlaceStretch(uint64_t rows);
  plan::WorkItem ItemOf(std::shared_ptr<SampleWork> work) const;
  void PlanBatch(uint64_t rows);
  void SetRaggedLayout(const std::vector<std::shared_ptr<SampleWork>>& works);
  void Plan(SampleWork& work) const;
  uint64_t SampleOf(const order::Place& place) const {
    return options_.first_of_source[place.source] + place.sample;
  }

  const Dataset& dataset_;
  order::RunOrder order_;
  Options options_;
  uint64_t epoch_ = 0;
  uint64_t position_ = 0;
  const bool ragged_;                 // some array is
  const bool planned_ahead_;          // a batch is planned before its first item is handed out
  std::vector<order::Place> places_;  // scratch
  std::optional<order::BatchSlice> slice_;
  std::deque<SuppliedBatch> supplied_;
  uint64_t row_ = 0;
  uint64_t uses_ = 0;                          // of supplied samples, and of shared extents
  std::shared_ptr<const BatchLayout> layout_;  // of this batch
  std::deque<plan::WorkItem> planned_;         // of this batch, what was not handed out
};

}  // namespace forebay::feed
