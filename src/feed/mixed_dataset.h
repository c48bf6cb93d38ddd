// Several data sets as one: its samples are those of the first, then those of the second, ...
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "feed/dataset.h"

namespace forebay::feed {

class MixedDataset : public Dataset {
 public:
  struct Part {
    std::string name;
    const Dataset* dataset = nullptr;  // outlives this one
    uint32_t first_object = 0;         // what its extents' object numbers count from
  };
  // Errors: kInvalidArgument naming the array in which two of them differ.
  static Result<std::unique_ptr<MixedDataset>> Make(std::vector<Part> parts);

  uint64_t sample_count() const override { return first_sample_.back(); }
  const std::vector<SampleArray>& arrays() const override { return parts_[0].dataset->arrays(); }
  Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  bool plans_together() const override;
  std::vector<std::vector<uint32_t>> Together(std::span<const uint64_t> samples) const override;
  Result<SamplePlan> PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                  size_t* bad_row) const override;
  bool shares_extents() const override;
  bool Shorten(SamplePlan* plan) const override;
  bool sizes_late() const override { return parts_[0].dataset->sizes_late(); }
  uint64_t LateBytes(uint64_t rows) const override;
  Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  uint64_t raw_bytes_max() const override;
  uint64_t OutputBytesMax(uint64_t rows) const override;
  bool plans_wait() const override;
  void WillPlan(std::span<const uint64_t> samples) const override;

 private:
  class Decoder;
  explicit MixedDataset(std::vector<Part> parts);
  size_t PartOf(uint64_t sample) const;
  SamplePlan Renumber(size_t part, SamplePlan own) const;

  std::vector<Part> parts_;
  std::vector<uint64_t> first_sample_{0};  // of each part, and one past the last
};

}  // namespace forebay::feed
