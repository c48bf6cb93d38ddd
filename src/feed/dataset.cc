#include "feed/dataset.h"

#include <fmt/core.h>

#include <set>
#include <string_view>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "feed/batch_layout.h"

namespace forebay::feed {

MutableBytes RowTarget::array(size_t i) const { return layout->RowOf(block, i, row); }

bool RowTargets::in_one_block() const {
  return std::ranges::all_of(listed_, [&](const RowTarget& target) {
    return target.layout == listed_[0].layout && target.block == listed_[0].block;
  });
}

uint64_t Dataset::OutputBytesMax(uint64_t rows) const {
  for (const SampleArray& array : arrays()) FB_ASSERT(!array.ragged());
  return BatchLayout(arrays(), rows).bytes();
}

std::vector<std::vector<uint32_t>> Dataset::Together(std::span<const uint64_t> samples) const {
  std::vector<std::vector<uint32_t>> groups(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) groups[i] = {static_cast<uint32_t>(i)};
  return groups;
}

std::vector<Dataset::Planned> Dataset::PlanBatch(std::span<const uint64_t> samples,
                                                 uint64_t gap_bytes) const {
  std::vector<Planned> all;
  for (std::vector<uint32_t>& group : Together(samples)) {
    std::vector<uint64_t> own;
    own.reserve(group.size());
    for (const uint32_t row : group) own.push_back(samples[row]);
    Planned planned;
    Result<SamplePlan> plan = PlanTogether(own, gap_bytes, &planned.bad_row);
    if (plan.ok()) {
      planned.plan = *std::move(plan);
    } else {
      planned.status = std::move(plan).status();
    }
    if (group.size() < samples.size()) planned.rows = std::move(group);
    all.push_back(std::move(planned));
  }
  return all;
}

Result<SamplePlan> Dataset::PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                         size_t* bad_row) const {
  FB_ASSERT(samples.size() == 1);
  *bad_row = 0;
  return PlanSample(samples[0], gap_bytes);
}

Status CheckNames(const std::vector<SampleArray>& arrays) {
  std::set<std::string_view> names = {"_sample", "_epoch", "_source", "_pad"};
  for (const SampleArray& array : arrays) {
    for (const std::string_view name :
         {std::string_view(array.name), std::string_view(array.offsets)}) {
      if (name.empty() || names.insert(name).second) continue;
      return Status(Code::kInvalidArgument,
                    fmt::format("two arrays of a batch would be named '{}': leave one out "
                                "(columns=) or give it another name (fb.ops.rename)",
                                name));
    }
  }
  return {};
}

}  // namespace forebay::feed
