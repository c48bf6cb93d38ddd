// schedule source + completions + "the head waits" -> the items to fetch, in sequence order. A pure
// state machine: no threads, no I/O, no clock of its own; one owner thread (the coordinator).
#pragma once

#include <cstdint>
#include <optional>

#include "base/executor.h"
#include "plan/runway.h"
#include "plan/schedule_source.h"

namespace forebay::plan {

// Classes of urgency, in the store's numbering.
enum class Urgency : uint8_t { kDemand = 0, kSoon = 1, kFar = 2 };

struct PlanItem {
  uint64_t sequence = 0;
  WorkItem item;
  Urgency urgency = Urgency::kFar;
  Time due = kNever;  // when the consumer is expected to want it
};

class Planner {
 public:
  Planner(ScheduleSource& source, const RunwayOptions& runway);

  // From now on `source_` yields another schedule (another epoch or position). Sequence and group
  // numbers go on; what was learned of latencies stays.
  void Restart();

  // A source that had ended has more.
  void SourceGrew() { ended_ = false; }

  // The next item that may be asked for now; nullptr when the runway is full or the schedule has
  // ended. Stays the same until Pop. An error of the source belongs to the item at that place; it
  // is returned once and the schedule goes on behind it.
  Result<const PlanItem*> Peek(Time now);
  PlanItem Pop();
  bool ended() const { return ended_ && !next_; }
  uint64_t groups_taken() const { return groups_taken_; }

  // The consumer waits for the group after the last one taken: it may be asked for whatever the
  // runway says, and its items become demand. True when this is news.
  bool HeadWaiting();
  bool head_waiting() const { return head_waiting_; }
  uint64_t head_group() const { return groups_taken_; }

  void OnTaken(Time now, Duration step, Duration wait);
  Runway& runway() { return runway_; }
  const Runway& runway() const { return runway_; }

 private:
  Status Fill();
  bool HasRoom(uint64_t group, uint64_t depth);

  ScheduleSource& source_;
  Runway runway_;
  std::optional<PlanItem> next_;
  uint64_t sequence_ = 0;
  uint64_t next_group_ = 0;  // of the next item that starts one
  uint64_t groups_taken_ = 0;
  Time last_taken_{};
  bool head_waiting_ = false;
  bool ended_ = false;
  bool full_ = false;  // the runway was, and is not yet refilled
};

}  // namespace forebay::plan
