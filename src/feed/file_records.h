// Plain objects as samples: each is delivered as it is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/files_catalog.h"
#include "feed/dataset.h"

namespace forebay::feed {

class FileRecords : public Dataset {
 public:
  explicit FileRecords(std::shared_ptr<const catalog::FilesCatalog> catalog);

  uint64_t sample_count() const override { return catalog_->count(); }
  // "bytes", with "offsets".
  const std::vector<SampleArray>& arrays() const override { return arrays_; }
  // A large object is several extents, so that it comes in parallel and each is copied as it comes.
  Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  order::BlockTable BlocksOf(uint64_t samples) const override;  // neighbours in the catalog
  uint64_t raw_bytes_max() const override;
  uint64_t OutputBytesMax(uint64_t rows) const override;
  bool plans_wait() const override { return catalog_->reads(); }
  void WillPlan(std::span<const uint64_t> samples) const override { catalog_->WillRead(samples); }

 private:
  std::shared_ptr<const catalog::FilesCatalog> catalog_;
  std::vector<SampleArray> arrays_;
};

}  // namespace forebay::feed
