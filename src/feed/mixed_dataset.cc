#include "feed/mixed_dataset.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace forebay::feed {
namespace {

// What a part planned, its extents numbered as it numbers them.
struct PartPlan {
  size_t part = 0;
  SamplePlan plan;
};

std::string TextOf(const SampleArray& array) {
  return fmt::format("{} {}[{}]", array.name, array.dtype, fmt::join(array.shape, ", "));
}

Status CheckSame(const MixedDataset::Part& first, const MixedDataset::Part& other) {
  const auto& a = first.dataset->arrays();
  const auto& b = other.dataset->arrays();
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string in_a = i < a.size() ? TextOf(a[i]) : "nothing";
    const std::string in_b = i < b.size() ? TextOf(b[i]) : "nothing";
    if (in_a != in_b) {
      return Status(Code::kInvalidArgument,
                    fmt::format("a mixture's sources must give equal arrays: '{}' has {}, '{}' has "
                                "{}",
                                first.name, in_a, other.name, in_b));
    }
  }
  if (first.dataset->sizes_late() != other.dataset->sizes_late()) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("a mixture's sources must be alike: only in one of '{}' and '{}' does "
                    "decoding alone tell how large rows are",
                    first.name, other.name));
  }
  return {};
}

}  // namespace

// Makes a part's decoder when its first sample comes.
class MixedDataset::Decoder : public SampleDecoder {
 public:
  explicit Decoder(const MixedDataset& mixed) : mixed_(mixed), of_part_(mixed.parts_.size()) {}

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes, const RowTargets& rows,
                size_t* bad_row) override {
    const auto& of = *static_cast<const PartPlan*>(plan.detail.get());
    auto& decoder = of_part_[of.part];
    if (!decoder) {
      FB_ASSIGN_OR_RETURN(decoder, mixed_.parts_[of.part].dataset->MakeDecoder());
    }
    const DecodeUnit& range = of.plan.units[unit];
    const UnitBytes own{std::span(of.plan.extents).subspan(range.first_extent, range.extent_count),
                        bytes.buffers};
    return decoder->Decode(of.plan, unit, own, rows, bad_row);
  }

 private:
  const MixedDataset& mixed_;
  std::vector<std::unique_ptr<SampleDecoder>> of_part_;
};

MixedDataset::MixedDataset(std::vector<Part> parts) : parts_(std::move(parts)) {
  for (const Part& part : parts_) {
    first_sample_.push_back(first_sample_.back() + part.dataset->sample_count());
  }
}

Result<std::unique_ptr<MixedDataset>> MixedDataset::Make(std::vector<Part> parts) {
  FB_ASSERT(!parts.empty());
  for (const Part& part : parts) FB_RETURN_IF_ERROR(CheckSame(parts[0], part));
  return std::unique_ptr<MixedDataset>(new MixedDataset(std::move(parts)));
}

size_t MixedDataset::PartOf(uint64_t sample) const {
  FB_ASSERT(sample < sample_count());
  return static_cast<size_t>(std::ranges::upper_bound(first_sample_, sample) -
                             first_sample_.begin()) -
         1;
}

// In the mixture's numbers.
SamplePlan MixedDataset::Renumber(size_t part, SamplePlan own) const {
  auto of = std::make_shared<PartPlan>(PartPlan{part, std::move(own)});
  SamplePlan plan = of->plan;
  for (Extent& extent : plan.extents) extent.object += parts_[part].first_object;
  plan.detail = std::move(of);
  return plan;
}

Result<SamplePlan> MixedDataset::PlanSample(uint64_t sample, uint64_t gap_bytes) const {
  const size_t part = PartOf(sample);
  FB_ASSIGN_OR_RETURN(SamplePlan own,
                      parts_[part].dataset->PlanSample(sample - first_sample_[part], gap_bytes));
  return Renumber(part, std::move(own));
}

bool MixedDataset::plans_together() const {
  return std::ranges::any_of(parts_,
                             [](const Part& part) { return part.dataset->plans_together(); });
}

bool MixedDataset::shares_extents() const {
  return std::ranges::any_of(parts_,
                             [](const Part& part) { return part.dataset->shares_extents(); });
}

bool MixedDataset::Shorten(SamplePlan* plan) const {
  if (plan->detail == nullptr) return false;  // it could not be made
  const auto& of = *static_cast<const PartPlan*>(plan->detail.get());
  SamplePlan own = of.plan;
  if (!parts_[of.part].dataset->Shorten(&own)) return false;
  *plan = Renumber(of.part, std::move(own));
  return true;
}

uint64_t MixedDataset::LateBytes(uint64_t rows) const {
  uint64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.dataset->LateBytes(rows));
  return most;
}

std::vector<std::vector<uint32_t>> MixedDataset::Together(std::span<const uint64_t> samples) const {
  std::vector<std::vector<uint32_t>> of_part(parts_.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    of_part[PartOf(samples[i])].push_back(static_cast<uint32_t>(i));
  }
  std::vector<std::vector<uint32_t>> groups;
  for (size_t part = 0; part < parts_.size(); ++part) {
    std::vector<uint64_t> own;
    for (const uint32_t i : of_part[part]) own.push_back(samples[i] - first_sample_[part]);
    for (std::vector<uint32_t>& group : parts_[part].dataset->Together(own)) {
      for (uint32_t& i : group) i = of_part[part][i];
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

// One that stands in for a bad one is of the same part.
Result<SamplePlan> MixedDataset::PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                              size_t* bad_row) const {
  const size_t part = PartOf(samples[0]);
  std::vector<uint64_t> own;
  for (const uint64_t sample : samples) {
    FB_ASSERT(PartOf(sample) == part);
    own.push_back(sample - first_sample_[part]);
  }
  FB_ASSIGN_OR_RETURN(SamplePlan plan, parts_[part].dataset->PlanTogether(own, gap_bytes, bad_row));
  return Renumber(part, std::move(plan));
}

Result<std::unique_ptr<SampleDecoder>> MixedDataset::MakeDecoder() const {
  return std::unique_ptr<SampleDecoder>(std::make_unique<Decoder>(*this));
}

std::string MixedDataset::DescribeSample(uint64_t sample) const {
  const size_t part = PartOf(sample);
  return fmt::format("{}: {}", parts_[part].name,
                     parts_[part].dataset->DescribeSample(sample - first_sample_[part]));
}

uint64_t MixedDataset::raw_bytes_max() const {
  uint64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.dataset->raw_bytes_max());
  return most;
}

// Equal arrays, so either all parts are ragged or none.
uint64_t MixedDataset::OutputBytesMax(uint64_t rows) const {
  if (std::ranges::none_of(arrays(), &SampleArray::ragged)) return Dataset::OutputBytesMax(rows);
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.dataset->OutputBytesMax(rows);
  return bytes;
}

bool MixedDataset::plans_wait() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.dataset->plans_wait(); });
}

void MixedDataset::WillPlan(std::span<const uint64_t> samples) const {
  std::vector<std::vector<uint64_t>> of_part(parts_.size());
  for (const uint64_t sample : samples) {
    const size_t part = PartOf(sample);
    of_part[part].push_back(sample - first_sample_[part]);
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!of_part[i].empty()) parts_[i].dataset->WillPlan(of_part[i]);
  }
}

}  // namespace forebay::feed
