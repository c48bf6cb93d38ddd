// From options and data sets to the order of a run, and its texts in a state.
#pragma once

#include <string>
#include <vector>

#include "engine/opened_source.h"
#include "forebay/dataset.h"
#include "forebay/loader.h"
#include "order/run_order.h"
#include "order/slicing.h"

namespace forebay::engine {

struct RunPlan {
  order::RunSpec order;
  order::Slicing slicing;
  std::vector<uint64_t> first_of_source;  // see feed::Sampler
  bool external = false;                  // ShuffleKind::kExternal
};

// Errors: kInvalidArgument naming the option, or the samples that fill no batch.
Result<RunPlan> PlanRun(const std::vector<OpenedSource>& sources,
                        const std::vector<SourceOptions>& options, const OrderOptions& order,
                        const PlaceOptions& place);

// Of samples that are but counted.
order::RunSpec SpecOfCount(uint64_t samples, uint64_t block_samples, const OrderOptions& order);
order::Tail TailOf(TailRule rule);
// Errors: kInvalidArgument.
Result<order::Slicing> SlicingOf(const PlaceOptions& place, TailRule tail);

// Shares as whole numbers: millionths of their sum. Errors: kInvalidArgument (none above 0, one
// below 0 or not finite).
Result<std::vector<uint64_t>> WeightsOf(const std::vector<double>& weights);

// What a state says about the order and the data beside the position.
LoaderState DescribeRun(const std::vector<OpenedSource>& sources, const OrderOptions& options,
                        const order::RunSpec& order);

// Whether `state` is of the run that `mine` describes, now or when its sources were less;
// kInvalidArgument naming the first field that differs. Position and mixture are not looked at.
Status CheckSameRun(const LoaderState& state, const LoaderState& mine,
                    const std::vector<OpenedSource>& sources);

}  // namespace forebay::engine
