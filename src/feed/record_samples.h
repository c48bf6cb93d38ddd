// Records of container formats as samples: their fields go through the op chain, or come as they
// are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/records_catalog.h"
#include "feed/dataset.h"
#include "feed/kept_samples.h"
#include "feed/record_chunks.h"
#include "feed/record_fields.h"
#include "forebay/ops.h"
#include "ops/chain.h"

namespace forebay::feed {

struct RecordSamplesOptions {
  std::vector<std::string> columns;  // the fields that ops see, or that come; empty: every record's
  std::vector<Op> ops;
  // Samples that come one after the other lie side by side: they are read in pieces of some MiB,
  // each once for all that it holds.
  bool neighbours = false;
};

class RecordSamples : public Dataset {
 public:
  // Errors: kInvalidArgument naming what is wrong with columns or ops.
  static Result<std::unique_ptr<RecordSamples>> Make(
      std::shared_ptr<const catalog::RecordsCatalog> catalog, const RecordSamplesOptions& options);
  ~RecordSamples() override;

  uint64_t sample_count() const override { return catalog_->count(); }
  const std::vector<SampleArray>& arrays() const override { return arrays_; }
  // Fields that only some records have, and that therefore do not come.
  const std::vector<std::string>& left_out() const { return left_out_; }
  Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  bool plans_together() const override { return chunks_ != nullptr; }
  std::vector<std::vector<uint32_t>> Together(std::span<const uint64_t> samples) const override;
  Result<SamplePlan> PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                  size_t* bad_row) const override;
  bool shares_extents() const override { return chunks_ != nullptr; }
  Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  // A few MiB of neighbours.
  order::BlockTable BlocksOf(uint64_t samples) const override;
  uint64_t raw_bytes_max() const override;
  uint64_t OutputBytesMax(uint64_t rows) const override;
  bool sizes_late() const override { return late_; }
  bool plans_wait() const override { return catalog_->reads(); }
  void WillPlan(std::span<const uint64_t> samples) const override { catalog_->WillRead(samples); }
  // Before the first plan: so many of the pieces that neighbours are read in may be in use at a
  // time.
  void ExpectPieces(uint64_t open) const {
    if (chunks_) chunks_->Expect(open);
  }
  // Of a piece that neighbours are read in, about; 0: they are not.
  uint64_t chunk_bytes() const;
  // What the ops make of all samples as far as it is the same in every epoch; of pictures about.
  uint64_t prepared_bytes() const;
  // Keeps it, as much of it as has room: of a sample that is kept nothing is read or decoded.
  KeptSamples& kept() const { return *kept_; }

 private:
  explicit RecordSamples(std::shared_ptr<const catalog::RecordsCatalog> catalog);
  Status Choose(const std::vector<std::string>& columns);
  Status SetArrays();
  static std::vector<Extent> ExtentsOf(const catalog::RecordView& record,
                                       std::vector<ByteRange> ranges, uint64_t gap_bytes);
  Status AddRaggedBytes(const catalog::RecordView& record, SamplePlan& plan) const;
  static size_t PlaceOf(const Extent& extent, SamplePlan& plan);
  Result<SamplePlan> PlanOfChunks(std::span<const uint64_t> samples, size_t* bad_row) const;

  std::shared_ptr<const catalog::RecordsCatalog> catalog_;
  std::shared_ptr<const RecordFields> fields_;
  std::vector<size_t> columns_;  // of fields_->fields(): the chain's inputs
  std::shared_ptr<const ops::Chain> chain_;
  std::vector<bool> needed_;  // of fields_->fields()
  std::vector<SampleArray> arrays_;
  bool ragged_ = false;     // some array is of another size in every sample
  bool late_ = false;       // some array is of as many values as only decoding tells
  uint64_t late_each_ = 1;  // bytes that a byte of a field may become in them
  std::vector<std::string> left_out_;
  std::unique_ptr<RecordChunks> chunks_;  // null: neighbours are not read together
  std::unique_ptr<KeptSamples> kept_;
};

}  // namespace forebay::feed
