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
  supplied_.clear();
  row_ = 0;
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
  if (options_.external) {
    if (supplied_.empty()) return std::optional<plan::WorkItem>();
    return std::optional(MakeSupplied());
  }
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
  return Finish(std::move(work));
}

plan::WorkItem Sampler::MakeSupplied() {
  const SuppliedBatch& batch = supplied_.front();
  auto work = std::make_shared<SampleWork>();
  work->place = {0, batch.samples[row_], batch.epoch};
  work->epoch = batch.epoch;
  work->position = batch.position + row_;
  work->row = row_++;
  work->rows = work->batch_samples = batch.samples.size();
  work->batch_position = batch.position;
  if (row_ == work->rows) {
    supplied_.pop_front();
    row_ = 0;
  }
  return Finish(std::move(work));
}

// From a place in a batch to what has to be fetched for it.
plan::WorkItem Sampler::Finish(std::shared_ptr<SampleWork> work) const {
  plan::WorkItem item;
  item.starts_group = work->row == 0;
  item.ends_group = work->row + 1 == work->rows;
  item.group_output_bytes = BatchLayout(dataset_.arrays(), work->rows).bytes;
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

uint64_t Sampler::NextUse(const SampleWork& work) {
  // Of an order that is not ours the best guess is an epoch later.
  if (options_.external) return uses_++ + dataset_.sample_count();
  return order_.NextUse(work.epoch, work.position);
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
