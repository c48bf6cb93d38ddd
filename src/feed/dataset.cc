#include "feed/dataset.h"

#include "base/assert.h"
#include "feed/batch_layout.h"

namespace forebay::feed {

MutableBytes RowTarget::array(size_t i) const { return layout->RowOf(block, i, row); }

uint64_t Dataset::OutputBytesMax(uint64_t rows) const {
  for (const SampleArray& array : arrays()) FB_ASSERT(!array.ragged());
  return BatchLayout(arrays(), rows).bytes();
}

std::vector<std::vector<uint32_t>> Dataset::Together(std::span<const uint64_t> samples) const {
  std::vector<std::vector<uint32_t>> groups(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) groups[i] = {static_cast<uint32_t>(i)};
  return groups;
}

Result<SamplePlan> Dataset::PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                         size_t* bad_row) const {
  FB_ASSERT(samples.size() == 1);
  *bad_row = 0;
  return PlanSample(samples[0], gap_bytes);
}

}  // namespace forebay::feed
