// Where a planner's work comes from. The sampler of a training run is the first; a mount's reader
// and a checkpoint's manifest are others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/extent.h"
#include "forebay/status.h"

namespace forebay::plan {

// What a source attaches for whoever consumes the item (a sample's decode plan); opaque here.
class Work {
 public:
  virtual ~Work() = default;
};

struct WorkItem {
  std::vector<Extent> extents;
  // Items of one group (a batch) are handed to the consumer together. Groups and items come in
  // order; the planner numbers the groups.
  uint64_t group = 0;
  bool starts_group = false;
  bool ends_group = false;
  // Reserved with the group's first item: the output of the whole group.
  uint64_t group_output_bytes = 0;
  std::shared_ptr<Work> work;
};

// One owner thread (the coordinator).
class ScheduleSource {
 public:
  virtual ~ScheduleSource() = default;
  // The next item in order; nullopt at the end of the schedule.
  virtual Result<std::optional<WorkItem>> Next() = 0;
};

}  // namespace forebay::plan
