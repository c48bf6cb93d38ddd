#include "feed/sampler.h"

#include <utility>

#include "feed/batch_layout.h"

namespace forebay::feed {

Sampler::Sampler(const Dataset& dataset, const Options& options)
    : dataset_(dataset), options_(options) {
  Seek(0, 0);
}

void Sampler::Seek(uint64_t epoch, uint64_t position) {
  epoch_ = epoch;
  position_ = position;
  slice_.reset();
  order_.reset();
}

Result<std::optional<plan::WorkItem>> Sampler::Next() {
  if (slice_ && row_ == slice_->rows) {
    position_ += slice_->global_samples;
    slice_.reset();
  }
  if (!slice_) {
    slice_ = order::SliceAt(options_.slicing, options_.order.samples, position_);
    if (!slice_ && position_ > 0) {  // the epoch is over
      Seek(epoch_ + 1, 0);
      slice_ = order::SliceAt(options_.slicing, options_.order.samples, position_);
    }
    if (!slice_) return std::optional<plan::WorkItem>();
    if (options_.epochs >= 0 && epoch_ >= static_cast<uint64_t>(options_.epochs)) {
      slice_.reset();
      return std::optional<plan::WorkItem>();
    }
    row_ = 0;
  }
  if (!order_) order_.emplace(options_.order, epoch_);
  return std::optional(Make(*slice_, row_++));
}

plan::WorkItem Sampler::Make(const order::BatchSlice& slice, uint64_t row) const {
  const order::Row at = order::RowOf(slice, options_.order.samples, row);
  auto work = std::make_shared<SampleWork>();
  work->sample = order_->SampleAt(at.position);
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
  Result<SamplePlan> plan = dataset_.PlanSample(work.sample, options_.gap_bytes);
  if (!plan.ok()) {
    work.plan_status = std::move(plan).status();
    return;
  }
  work.plan = *std::move(plan);
  item.extents = work.plan.extents;
}

plan::WorkItem Sampler::Substitute(const SampleWork& bad) const {
  auto work = std::make_shared<SampleWork>(bad);
  ++work->attempt;
  work->plan_status = {};
  work->plan = {};
  work->sample = order::SubstituteFor(options_.order, work->epoch, work->position, work->attempt);
  plan::WorkItem item;
  Plan(*work, item);
  item.work = std::move(work);
  return item;
}

uint64_t Sampler::NextUse(const SampleWork& work) {
  const uint64_t epoch = work.epoch + 1;
  if (!next_order_ || next_order_epoch_ != epoch) {
    next_order_.emplace(options_.order, epoch);
    next_order_epoch_ = epoch;
  }
  return epoch * options_.order.samples + next_order_->PositionOf(work.sample);
}

}  // namespace forebay::feed
