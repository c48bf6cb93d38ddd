// The samples of an item, and where each goes in its batch. Data sets of millions of small rows a
// second make whole batches of them: what a row costs is then a number, and not a structure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "order/run_order.h"

namespace forebay::feed {

// A sample in its batch.
struct SampleRow {
  uint64_t sample = 0;    // of the data set, all its sources numbered through
  order::Place place;     // which source's sample that is
  uint64_t position = 0;  // in the epoch, over all ranks
  uint64_t row = 0;       // in the batch
  bool pad = false;
  uint64_t attempt = 0;  // > 0: a substitute for a bad sample
};

// A batch of the only source's samples as the order has them, one position after the other.
struct Stretch {
  uint64_t epoch = 0;             // of the order, and so of the source
  uint64_t position = 0;          // of the first row
  std::vector<uint64_t> samples;  // of each row
};

// Each row by itself, or rows of a stretch.
class SampleRows {
 public:
  SampleRows() = default;
  explicit SampleRows(std::vector<SampleRow> listed) : listed_(std::move(listed)) {}
  // `picked`: which rows, growing; none: all.
  explicit SampleRows(std::shared_ptr<const Stretch> stretch, std::vector<uint32_t> picked = {})
      : stretch_(std::move(stretch)), picked_(std::move(picked)) {}

  size_t size() const {
    if (!stretch_) return listed_.size();
    return picked_.empty() ? stretch_->samples.size() : picked_.size();
  }
  SampleRow operator[](size_t i) const {
    if (!stretch_) return listed_[i];
    const uint64_t row = picked_.empty() ? i : picked_[i];
    const uint64_t sample = stretch_->samples[row];
    return {.sample = sample,
            .place = {0, sample, stretch_->epoch},
            .position = stretch_->position + row,
            .row = row};
  }
  void Replace(size_t i, const SampleRow& row) {
    if (stretch_) {
      std::vector<SampleRow> listed;
      listed.reserve(size());
      for (size_t k = 0; k < size(); ++k) listed.push_back((*this)[k]);
      *this = SampleRows(std::move(listed));
    }
    listed_[i] = row;
  }
  // Null: they are listed.
  const Stretch* stretch() const { return stretch_.get(); }
  std::span<const uint32_t> picked() const { return picked_; }

 private:
  std::vector<SampleRow> listed_;
  std::shared_ptr<const Stretch> stretch_;
  std::vector<uint32_t> picked_;
};

}  // namespace forebay::feed
