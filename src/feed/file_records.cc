#include "feed/file_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "feed/batch_layout.h"

namespace forebay::feed {
namespace {

constexpr uint64_t kExtentBytes = 8ULL << 20;  // a GET's worth; whole slabs
constexpr uint64_t kBlockFiles = 256;
static_assert(kExtentBytes % kSlabBytes == 0);

class CopyDecoder : public SampleDecoder {
 public:
  Status Decode(const SamplePlan&, size_t, const UnitBytes& bytes, const RowTargets& rows,
                size_t*) override {
    const ByteRange range = bytes.extents[0].range;
    bytes.buffers[0]->CopyOut(0, rows[0].array(0).subspan(range.offset, range.size()));
    return {};
  }
};

}  // namespace

FileRecords::FileRecords(std::shared_ptr<const catalog::FilesCatalog> catalog)
    : catalog_(std::move(catalog)),
      arrays_{{.name = "bytes", .dtype = "uint8", .shape = {}, .bytes = 0, .offsets = "offsets"}} {}

Result<SamplePlan> FileRecords::PlanSample(uint64_t sample, uint64_t) const {
  FB_ASSIGN_OR_RETURN(const uint64_t size, catalog_->SizeOf(sample));
  if (size > catalog_->LargestBytes(1)) {
    return Status(Code::kDataLoss, fmt::format("object {} of the catalog is {} bytes long, and the "
                                               "largest is {}",
                                               sample, size, catalog_->LargestBytes(1)));
  }
  SamplePlan plan;
  plan.ragged_bytes = {size};
  for (uint64_t at = 0; at < size; at += kExtentBytes) {
    plan.units.push_back({plan.extents.size(), 1});
    plan.extents.push_back(
        {static_cast<uint32_t>(sample), {at, std::min(size, at + kExtentBytes)}});
  }
  return plan;
}

Result<std::unique_ptr<SampleDecoder>> FileRecords::MakeDecoder() const {
  return std::unique_ptr<SampleDecoder>(std::make_unique<CopyDecoder>());
}

std::string FileRecords::DescribeSample(uint64_t sample) const {
  const auto entry = catalog_->At(sample);
  return entry.ok() ? entry->key : fmt::format("object {} of the catalog", sample);
}

order::BlockTable FileRecords::BlocksOf(uint64_t samples) const {
  return order::BlockTable::Uniform(samples, kBlockFiles);
}

uint64_t FileRecords::raw_bytes_max() const {
  return SlabsFor(catalog_->LargestBytes(1)) * kSlabBytes;
}

uint64_t FileRecords::OutputBytesMax(uint64_t rows) const {
  return catalog_->LargestBytes(rows) + BatchLayout::kAlign;
}

}  // namespace forebay::feed
