// The order of a run that goes on from a state.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "engine/opened_source.h"
#include "engine/run_spec.h"
#include "forebay/dataset.h"
#include "forebay/loader.h"
#include "order/run_order.h"

namespace forebay::engine {

// When a source had how many samples. Errors: kInvalidArgument for a size that it never had.
Result<std::vector<order::SourceSize>> SizesOf(const OpenedSource& source,
                                               const std::vector<SourceGrowth>& sizes);

// The order that the state was saved in: weights, and how many samples each source had when. `mine`
// is this loader's. Errors: kInvalidArgument naming the field of the state that differs, or that
// cannot be.
Result<order::RunSpec> SpecOfState(const std::vector<OpenedSource>& sources,
                                   const OrderOptions& options, const order::RunSpec& mine,
                                   const LoaderState& state);

// The samples that a state says were replaced, as plan.first_of_source numbers those of all
// sources. Errors: kInvalidArgument for one that is not there.
Result<std::set<uint64_t>> ReplacedOf(const LoaderState& state,
                                      const std::vector<OpenedSource>& sources,
                                      const RunPlan& plan);
// The way back: LoaderState::replaced.
std::vector<std::pair<int64_t, int64_t>> InSources(const std::set<uint64_t>& samples,
                                                   const RunPlan& plan);

// What has been appended to the sources since then comes with the first epoch of each that has not
// begun at the state's position. `order`: of `spec`.
void GrowSources(const std::vector<OpenedSource>& sources, const LoaderState& state,
                 order::RunOrder& order, order::RunSpec* spec);

}  // namespace forebay::engine
