#include "feed/sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace forebay::feed {
namespace {
constexpr size_t kAnnounced = 1024;  // samples, beside those of the batch at hand
}  // namespace

Sampler::Sampler(const Dataset& dataset, order::RunOrder order, Options options)
    : dataset_(dataset),
      order_(std::move(order)),
      options_(std::move(options)),
      ragged_(std::ranges::any_of(dataset.arrays(), &SampleArray::ragged)),
      planned_ahead_(ragged_ || dataset.plans_together()) {}

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
  if (planned_ahead_) {
    item = std::move(planned_.front());
    planned_.pop_front();
  } else {
    auto work = NewWork();
    work->rows = SampleRows({PlaceRow(row_)});
    Plan(*work);
    item = ItemOf(std::move(work));
    item->starts_group = row_ == 0;
    item->ends_group = row_ + 1 == rows;
  }
  row_ += static_cast<const SampleWork&>(*item->work).rows.size();
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
  if (dataset_.plans_wait()) AnnounceAhead();
  if (!ragged_) layout_ = std::make_shared<const BatchLayout>(dataset_.arrays(), rows);
  if (planned_ahead_) PlanBatch(rows);
}

void Sampler::PlanBatch(uint64_t rows) {
  const std::shared_ptr<const Stretch> stretch = PlaceStretch(rows);
  std::vector<SampleRow> placed;
  std::vector<uint64_t> of_placed;
  if (!stretch) {
    placed = PlaceRows(rows);
    of_placed.reserve(rows);
    for (const SampleRow& row : placed) of_placed.push_back(row.sample);
  }
  const std::span<const uint64_t> samples = stretch ? stretch->samples : of_placed;
  std::vector<std::shared_ptr<SampleWork>> works;
  for (Dataset::Planned& planned : dataset_.PlanBatch(samples, options_.gap_bytes)) {
    std::shared_ptr<SampleWork> work = NewWork();
    if (stretch) {
      work->rows = SampleRows(stretch, std::move(planned.rows));
    } else if (planned.rows.empty()) {
      work->rows = SampleRows(placed);
    } else {
      std::vector<SampleRow> own;
      own.reserve(planned.rows.size());
      for (const uint32_t row : planned.rows) own.push_back(placed[row]);
      work->rows = SampleRows(std::move(own));
    }
    work->plan = std::move(planned.plan);
    work->plan_status = std::move(planned.status);
    work->plan_bad_row = planned.bad_row;
    works.push_back(work);
    planned_.push_back(ItemOf(std::move(work)));
  }
  planned_.front().starts_group = planned_.back().ends_group = true;
  if (ragged_) SetRaggedLayout(works);
}

// Where samples differ in size: of what could not be planned nothing is known.
void Sampler::SetRaggedLayout(const std::vector<std::shared_ptr<SampleWork>>& works) {
  const uint64_t rows = works.front()->batch_rows;
  const auto ragged =
      static_cast<size_t>(std::ranges::count_if(dataset_.arrays(), &SampleArray::ragged));
  std::vector<uint64_t> bytes(rows * ragged);
  for (const std::shared_ptr<SampleWork>& work : works) {
    const std::vector<uint64_t>& sizes = work->plan.ragged_bytes;
    for (size_t i = 0; i < sizes.size(); ++i) {
      bytes[work->rows[i / ragged].row * ragged + i % ragged] = sizes[i];
    }
  }
  layout_ = std::make_shared<const BatchLayout>(dataset_.arrays(), rows, bytes);
  uint64_t late = dataset_.LateBytes(rows);
  for (const std::shared_ptr<SampleWork>& work : works) late += work->plan.late_bytes;
  for (size_t i = 0; i < works.size(); ++i) {
    planned_[i].group_output_bytes = layout_->bytes() + late;
    works[i]->layout = layout_;
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

std::shared_ptr<SampleWork> Sampler::NewWork() const {
  auto work = std::make_shared<SampleWork>();
  if (options_.external) {
    const SuppliedBatch& batch = supplied_.front();
    work->epoch = batch.epoch;
    work->batch_rows = work->batch_samples = batch.samples.size();
    work->batch_position = batch.position;
  } else {
    work->epoch = epoch_;
    work->batch_rows = slice_->rows;
    work->batch_position = slice_->first_position;
    work->batch_samples = slice_->global_samples;
  }
  return work;
}

SampleRow Sampler::PlaceRow(uint64_t row) {
  SampleRow placed;
  placed.row = row;
  if (options_.external) {
    const SuppliedBatch& batch = supplied_.front();
    placed.place = {0, batch.samples[row], batch.epoch};
    placed.position = batch.position + row;
  } else {
    const order::Row at = order::RowOf(*slice_, order_.EpochSamples(epoch_), row);
    placed.place = order_.At(epoch_, at.position);
    placed.position = at.position;
    placed.pad = at.pad;
  }
  placed.sample = SampleOf(placed.place);
  return placed;
}

// All of a batch, as PlaceRow says.
std::vector<SampleRow> Sampler::PlaceRows(uint64_t rows) {
  std::vector<SampleRow> placed;
  placed.reserve(rows);
  uint64_t row = 0;
  if (!options_.external) {
    const uint64_t samples = order_.EpochSamples(epoch_);
    const order::Row first = order::RowOf(*slice_, samples, 0);
    // Those that are no pads follow one another.
    const uint64_t own = slice_->global_samples - std::min(slice_->offset, slice_->global_samples);
    places_.resize(first.pad ? 0 : std::min(rows, own));
    order_.AtEach(epoch_, first.position, places_);
    for (; row < places_.size(); ++row) {
      placed.push_back({.sample = SampleOf(places_[row]),
                        .place = places_[row],
                        .position = first.position + row,
                        .row = row});
    }
  }
  for (; row < rows; ++row) placed.push_back(PlaceRow(row));
  return placed;
}

// The batch as the order has it, without a structure for each row; null where that is not all that
// there is to say of them.
std::shared_ptr<const Stretch> Sampler::PlaceStretch(uint64_t rows) {
  if (options_.external || !order_.natural() || options_.first_of_source[0] != 0) return nullptr;
  if (slice_->offset + rows > slice_->global_samples) return nullptr;  // some are pads
  auto stretch = std::make_shared<Stretch>();
  stretch->epoch = epoch_;
  stretch->position = slice_->first_position + slice_->offset;
  stretch->samples.resize(rows);
  order_.SamplesAt(epoch_, stretch->position, stretch->samples);
  return stretch;
}

// Of a work that is planned.
plan::WorkItem Sampler::ItemOf(std::shared_ptr<SampleWork> work) const {
  plan::WorkItem item;
  if (!ragged_) {
    work->layout = layout_;
    item.group_output_bytes = layout_->bytes();
  }
  item.extents = work->plan.extents;
  item.work = std::move(work);
  return item;
}

// From places in a batch to what has to be fetched for them.
void Sampler::Plan(SampleWork& work) const {
  std::vector<uint64_t> samples;
  samples.reserve(work.rows.size());
  for (size_t i = 0; i < work.rows.size(); ++i) samples.push_back(work.rows[i].sample);
  Result<SamplePlan> plan = dataset_.PlanTogether(samples, options_.gap_bytes, &work.plan_bad_row);
  if (!plan.ok()) {
    work.plan_status = std::move(plan).status();
    return;
  }
  work.plan = *std::move(plan);
}

uint64_t Sampler::NextUse(const SampleWork& work) {
  // Extents that are shared serve others soon, for as long as the blocks of a shuffle are open;
  // what was used longest ago is the likeliest to be done with.
  if (dataset_.shares_extents()) return std::numeric_limits<uint64_t>::max() - uses_++;
  // Of an order that is not ours the best guess is an epoch later.
  if (options_.external) return uses_++ + dataset_.sample_count();
  return order_.NextUse(work.epoch, work.rows[0].position);
}

plan::WorkItem Sampler::Substitute(const SampleWork& bad, size_t bad_row) {
  auto work = std::make_shared<SampleWork>(bad);
  work->plan_status = {};
  work->plan = {};
  SampleRow row = work->rows[bad_row];
  ++row.attempt;
  row.place = order_.SubstituteFor(row.place, work->epoch, row.position, row.attempt);
  row.sample = SampleOf(row.place);
  work->rows.Replace(bad_row, row);
  Plan(*work);
  plan::WorkItem item;
  item.extents = work->plan.extents;
  item.work = std::move(work);
  return item;
}

}  // namespace forebay::feed
