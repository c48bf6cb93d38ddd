// What a data set is to the feeder: samples that need some extents, and a pure function from their
// bytes to arrays. VideoClips is the first; record formats are others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/extent.h"
#include "base/slab_pool.h"
#include "forebay/status.h"
#include "ops/chain.h"
#include "order/block_table.h"

namespace forebay::feed {

// One array of one sample.
struct SampleArray {
  std::string name;
  std::string dtype;           // as in ArraySpec
  std::vector<int64_t> shape;  // without the batch dimension; of a ragged one {}
  uint64_t bytes = 0;          // of a ragged one 0: SamplePlan says it
  // Not "": samples differ in size. In a batch they lie one after the other, and an array of this
  // name, int64 [B + 1], says where each begins.
  std::string offsets = "";
  bool ragged() const { return !offsets.empty(); }
};

// No two arrays of a batch may have one name, those of offsets and of the batch itself ("_sample")
// included. Errors: kInvalidArgument naming it.
Status CheckNames(const std::vector<SampleArray>& arrays);

// A piece of a plan that can be decoded by itself once its extents are whole (one camera; a few
// records of many).
struct DecodeUnit {
  size_t first_extent = 0;
  size_t extent_count = 0;
  size_t first_row = 0;
  size_t row_count = 1;
};

// Of one sample, or of several that are read and decoded together: its rows.
struct SamplePlan {
  std::vector<Extent> extents;
  std::vector<DecodeUnit> units;
  std::vector<uint64_t> ragged_bytes;  // row by row, of each ragged array
  uint64_t late_bytes = 0;             // of all rows, where only decoding tells: no more, about
  uint64_t used_bytes = 0;             // of the extents, what the rows need
  std::shared_ptr<const void> detail;  // the data set's own
};

// Bytes of one unit's extents, in their order.
struct UnitBytes {
  std::span<const Extent> extents;
  std::span<const std::shared_ptr<SlabBuffer>> buffers;
};

class BatchLayout;
class LateRows;

// Where a row's arrays go: its place in a batch.
struct RowTarget {
  ops::SampleIdentity identity;  // for what is random in it
  std::byte* block = nullptr;
  const BatchLayout* layout = nullptr;
  uint64_t row = 0;
  LateRows* late = nullptr;            // where Dataset::sizes_late
  MutableBytes array(size_t i) const;  // of Dataset::arrays()
};

// Where the rows of one unit go: each by itself, or rows of one batch. Points into what made it.
class RowTargets {
 public:
  // Of a batch's rows: what all have in common, the samples of all its rows, and which of them
  // these are (none: `count` from `first` on).
  struct OfBatch {
    RowTarget common;
    std::span<const uint64_t> samples;
    std::span<const uint32_t> rows;
    uint64_t first = 0;
    size_t count = 0;
  };
  RowTargets() = default;
  RowTargets(std::vector<RowTarget> listed)  // NOLINT(google-explicit-constructor)
      : listed_(std::move(listed)), count_(listed_.size()), is_listed_(true) {}
  explicit RowTargets(const OfBatch& batch) : batch_(batch), count_(batch.count) {}

  size_t size() const { return count_; }
  RowTarget operator[](size_t i) const {
    if (is_listed_) return listed_[i];
    RowTarget target = batch_.common;
    target.row = RowOf(i);
    target.identity.sample = batch_.samples[target.row];
    return target;
  }
  uint64_t RowOf(size_t i) const {
    if (is_listed_) return listed_[i].row;
    return batch_.rows.empty() ? batch_.first + i : batch_.rows[i];
  }
  // Whether all go into one batch's block.
  bool in_one_block() const;
  // Whether they are rows of one block that follow one another.
  bool follow() const { return !is_listed_ && batch_.rows.empty(); }

 private:
  std::vector<RowTarget> listed_;
  OfBatch batch_;
  size_t count_ = 0;
  bool is_listed_ = false;
};

// One per decode worker: scratch and open decoders. Not thread-safe.
class SampleDecoder {
 public:
  virtual ~SampleDecoder() = default;
  // Writes the unit's arrays; `rows`: those of the unit. A pure function of its arguments. After an
  // error `bad_row` says of which of `rows` it is.
  virtual Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes,
                        const RowTargets& rows, size_t* bad_row) = 0;
};

// Immutable, shared by threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t sample_count() const = 0;
  virtual const std::vector<SampleArray>& arrays() const = 0;
  // `gap_bytes`: read through gaps up to this size rather than ask twice.
  virtual Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const = 0;
  // Whether samples of one batch may be planned together: small ones that lie side by side. Then
  // Together sorts a batch's samples (their indices in `samples`) into those that are, each once.
  virtual bool plans_together() const { return false; }
  virtual std::vector<std::vector<uint32_t>> Together(std::span<const uint64_t> samples) const;
  // No batch of so many samples is more items.
  virtual uint64_t ItemsMax(uint64_t samples) const { return samples; }
  // As Together and PlanTogether, of a whole batch.
  struct Planned {
    std::vector<uint32_t> rows;  // indices in `samples`, growing; none: all
    SamplePlan plan;
    Status status;       // not OK: there is no plan
    size_t bad_row = 0;  // of `rows`
  };
  virtual std::vector<Planned> PlanBatch(std::span<const uint64_t> samples,
                                         uint64_t gap_bytes) const;
  // After an error `bad_row` says of which sample it is.
  virtual Result<SamplePlan> PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                          size_t* bad_row) const;
  // Whether plans have extents in common, bytes that serve many samples: they are fetched once and
  // kept while others that need them may come.
  virtual bool shares_extents() const { return false; }
  // Plans are made ahead of time: makes one smaller of which something need not be read any more,
  // by what the data set keeps itself. False: it stays as it is.
  virtual bool Shorten(SamplePlan* plan) const {
    (void)plan;
    return false;
  }
  // Whether only decoding tells the sizes of ragged arrays. Plans say 0, decoding puts them into
  // RowTarget::late, and the batch is laid out when it is whole. What that takes is the sum of
  // SamplePlan::late_bytes, and, about, LateBytes in a batch of so many rows.
  virtual bool sizes_late() const { return false; }
  virtual uint64_t LateBytes(uint64_t rows) const { return rows * 0; }
  virtual Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const = 0;
  // "scene a, front at 3.2 s": for error texts.
  virtual std::string DescribeSample(uint64_t sample) const = 0;
  // For a shuffle in two levels: samples of one block lie together, in objects or in time.
  // `samples`: of the first so many; as a data set that grew had them.
  virtual order::BlockTable BlocksOf(uint64_t samples) const {
    return order::BlockTable::Uniform(samples, 1);
  }
  // No plan's slabs take more.
  virtual uint64_t raw_bytes_max() const = 0;
  // No batch of so many different samples takes more. Where arrays are ragged, all of it.
  virtual uint64_t OutputBytesMax(uint64_t rows) const;
  // Whether planning may wait for what it has to read first. Then WillPlan begins that for the
  // samples that are planned next, the first ones first, and never waits itself.
  virtual bool plans_wait() const { return false; }
  virtual void WillPlan(std::span<const uint64_t> samples) const { (void)samples; }
};

}  // namespace forebay::feed
