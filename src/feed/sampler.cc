#include "feed/sampler.h"

#include <algorithm>
#include <utility>

namespace forebay::feed {
namespace {
constexpr size_t kAnnounced = 1024;  // samples, beside those of the batch at hand
}  // namespace

Sampler::Sampler(const Dataset& dataset, order::RunOrder order, Options options)
    : dataset_(dataset),
      order_(std::move(order)),
      options_(std::move(options)),
      ragged_(std::ranges::any_of(dataset.arrays(), &SampleArray::ragged)) {}

void Sampler::Seek(uint64_t epoch, uint64_t position) {
  epoch_ = epoch;
  position_ = position;
  slice_.reset();
  supplied_.clear();
  planned_.clear();
  row_ = 0;
}

// The next batch of which this rank has rows; false: the schedule is over.
bool Sampler::NextSlice() {
  bool none_in_epoch = false;
  while (!slice_ || row_ == slice_->rows) {
    if (slice_) position_ += slice_->global_samples;
    slice_ = order::SliceAt(options_.slicing, order_.EpochSamples(epoch_), position_);
    if (!slice_ && position_ > 0) {  // the epoch is over
      // An epoch that gives this process nothing is like all others.
      if (std::exchange(none_in_epoch, true)) return false;
      Seek(epoch_ + 1, 0);
      slice_ = order::SliceAt(options_.slicing, order_.EpochSamples(epoch_), position_);
    }
    if (!slice_) return false;
    if (options_.epochs >= 0 && epoch_ >= static_cast<uint64_t>(options_.epochs)) {
      slice_.reset();
      return false;
    }
    row_ = order::TakesBatchAt(options_.slicing, position_) ? 0 : slice_->rows;
    // A ragged tail that leaves this rank nothing, in every epoch: there is no more to come.
    if (slice_->rows == 0 && slice_->first_position == 0) return false;
  }
  return true;
}

Result<std::optional<plan::WorkItem>> Sampler::Next() {
  if (options_.external ? supplied_.empty() : !NextSlice()) return std::optional<plan::WorkItem>();
  const uint64_t rows = options_.external ? supplied_.front().samples.size() : slice_->rows;
  if (row_ == 0) OpenBatch(rows);
  std::optional<plan::WorkItem> item;
  if (ragged_) {
    item = std::move(planned_.front());
    planned_.pop_front();
  } else {
    item = Finish(PlaceRow(row_));
  }
  ++row_;
  if (options_.external && row_ == rows) {
    supplied_.pop_front();
    row_ = 0;
  }
  return item;
}

// What a batch takes must be known before its first item may be asked for. Where samples differ in
// size, that takes the plans of all.
void Sampler::OpenBatch(uint64_t rows) {
  planned_.clear();
  if (!ragged_) {
    layout_ = std::make_shared<const BatchLayout>(dataset_.arrays(), rows);
    return;
  }
  if (dataset_.plans_wait()) AnnounceAhead();
  std::vector<std::shared_ptr<SampleWork>> works;
  for (uint64_t row = 0; row < rows; ++row) works.push_back(PlaceRow(row));
  const auto ragged =
      static_cast<size_t>(std::ranges::count_if(dataset_.arrays(), &SampleArray::ragged));
  std::vector<uint64_t> bytes;
  for (const std::shared_ptr<SampleWork>& work : works) {
    planned_.push_back(Finish(work));
    std::vector<uint64_t> sizes = work->plan.ragged_bytes;
    sizes.resize(ragged);  // of what could not be planned: nothing
    bytes.insert(bytes.end(), sizes.begin(), sizes.end());
  }
  layout_ = std::make_shared<const BatchLayout>(dataset_.arrays(), rows, bytes);
  for (size_t row = 0; row < works.size(); ++row) {
    planned_[row].group_output_bytes = layout_->bytes();
    works[row]->layout = layout_;
  }
}

// This batch's samples and those of the next few, of this epoch.
void Sampler::AnnounceAhead() {
  std::vector<uint64_t> samples;
  if (options_.external) {
    for (const SuppliedBatch& batch : supplied_) {
      for (const uint64_t sample : batch.samples) samples.push_back(SampleOf({0, sample, 0}));
      if (samples.size() >= kAnnounced) break;
    }
  } else {
    auto slice = slice_;
    const uint64_t end = order_.EpochSamples(epoch_);
    for (uint64_t at = position_; slice; at += slice->global_samples) {
      slice = order::SliceAt(options_.slicing, end, at);
      if (!slice || (at > position_ && samples.size() + slice->rows > kAnnounced)) break;
      for (uint64_t row = 0; row < slice->rows; ++row) {
        samples.push_back(SampleOf(order_.At(epoch_, order::RowOf(*slice, end, row).position)));
      }
    }
  }
  dataset_.WillPlan(samples);
}

std::shared_ptr<SampleWork> Sampler::PlaceRow(uint64_t row) {
  if (options_.external) return PlaceSupplied(row);
  const order::Row at = order::RowOf(*slice_, order_.EpochSamples(epoch_), row);
  auto work = std::make_shared<SampleWork>();
  work->place = order_.At(epoch_, at.position);
  work->epoch = epoch_;
  work->position = at.position;
  work->pad = at.pad;
  work->row = row;
  work->rows = slice_->rows;
  work->batch_position = slice_->first_position;
  work->batch_samples = slice_->global_samples;
  return work;
}

std::shared_ptr<SampleWork> Sampler::PlaceSupplied(uint64_t row) const {
  const SuppliedBatch& batch = supplied_.front();
  auto work = std::make_shared<SampleWork>();
  work->place = {0, batch.samples[row], batch.epoch};
  work->epoch = batch.epoch;
  work->position = batch.position + row;
  work->row = row;
  work->rows = work->batch_samples = batch.samples.size();
  work->batch_position = batch.position;
  return work;
}

// From a place in a batch to what has to be fetched for it.
plan::WorkItem Sampler::Finish(std::shared_ptr<SampleWork> work) const {
  plan::WorkItem item;
  item.starts_group = work->row == 0;
  item.ends_group = work->row + 1 == work->rows;
  if (!ragged_) {
    work->layout = layout_;
    item.group_output_bytes = layout_->bytes();
  }
  Plan(*work, item);
  item.work = std::move(work);
  return item;
}

void Sampler::Plan(SampleWork& work, plan::WorkItem& item) const {
  work.sample = SampleOf(work.place);
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
