// How a loader's memory= is shared out.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/opened_source.h"
#include "engine/run_spec.h"
#include "feed/dataset.h"
#include "forebay/loader.h"

namespace forebay::engine {

struct RunMemory {
  uint64_t in_work = 0;   // raw and decoded bytes of what is fetched and not yet taken
  uint64_t kept = 0;      // of delivered extents, for another use
  uint64_t prepared = 0;  // of what ops made of samples, for each of the sources of records
  uint64_t decoded = 0;   // of decoded pieces of tables, for each of the sources that has some
  uint64_t pieces = 0;    // of shards, that are in use at a time
};

// Errors: kInvalidArgument when the largest batch does not fit.
Result<RunMemory> PlanMemory(const LoaderOptions& options, const RunPlan& plan,
                             const std::vector<OpenedSource>& sources,
                             const feed::Dataset& dataset);

}  // namespace forebay::engine
