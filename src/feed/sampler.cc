#include "feed/sampler.h"

#include <utility>

#include "feed/batch_layout.h"

namespace forebay::feed {

Sampler::Sampler(const Dataset& dataset, order::RunOrder order, Options options)
    : dataset_(dataset), order_(std::move(order)), options_(std::move(options)) {}

void Sampler::Seek(uint64_t epoch, uint64_t position) {
  epoch_ = epoch;
  position_ = position;
  slice_.reset();
}

// The next batch of which this rank has rows; false: the schedule is over.
bool Sampler::NextSlice() {
  while (!slice_ || row_ == slice_->rows) {
    if (slice_) position_ += slice_->global_samples;
    slice_ = order::SliceAt(options_.slicing, order_.EpochSamples(epoch_), position_);
    if (!slice_ && position_ > 0) {  // the epoch is over
      Seek(epoch_ + 1, 0);
      slice_ = order::SliceAt(options_.slicing, order_.EpochSamples(epoch_), position_);
    }
    if (!slice_) return false;
    if (options_.epochs >= 0 && epoch_ >= static_cast<uint64_t>(options_.epochs)) {
      slice_.reset();
      return false;
    }
    row_ = 0;
    // A ragged tail that leaves this rank nothing, in every epoch: there is no more to come.
    if (slice_->rows == 0 && slice_->first_position == 0) return false;
  }
  return true;
}

Result<std::optional<plan::WorkItem>> Sampler::Next() {
  if (!NextSlice()) return std::optional<plan::WorkItem>();
  return std::optional(Make(*slice_, row_++));
}

plan::WorkItem Sampler::Make(const order::BatchSlice& slice, uint64_t row) {
  const order::Row at = order::RowOf(slice, order_.EpochSamples(epoch_), row);
  auto work = std::make_shared<SampleWork>();
  work->place = order_.At(epoch_, at.position);
  work->epoch = epoch_;
  work->position = at.position;
  work->pad = at.pad;
  work->row = row;
  work->rows = slice.rows;
  work->batch_position = slice.first_position;
  work->batch_samples = slice.global_samples;
  plan::WorkItem item;
  item.starts_group = row == 0;
  item.ends_group = row + 1 == slice.rows;
  item.group_output_bytes = BatchLayout(dataset_.arrays(), slice.rows).bytes;
  Plan(*work, item);
  item.work = std::move(work);
  return item;
}

void Sampler::Plan(SampleWork& work, plan::WorkItem& item) const {
  work.sample = options_.first_of_source[work.place.source] + work.place.sample;
  Result<SamplePlan> plan = dataset_.PlanSample(work.sample, options_.gap_bytes);
  if (!plan.ok()) {
    work.plan_status = std::move(plan).status();
    return;
  }
  work.plan = *std::move(plan);
  item.extents = work.plan.extents;
}

plan::WorkItem Sampler::Substitute(const SampleWork& bad) {
  auto work = std::make_shared<SampleWork>(bad);
  ++work->attempt;
  work->plan_status = {};
  work->plan = {};
  work->place = order_.SubstituteFor(bad.place, work->epoch, work->position, work->attempt);
  plan::WorkItem item;
  Plan(*work, item);
  item.work = std::move(work);
  return item;
}

}  // namespace forebay::feed
