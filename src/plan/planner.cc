#include "plan/planner.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace forebay::plan {
namespace {

constexpr double kShortStepS = 0.0005;
constexpr uint64_t kRefillShare = 4;

}  // namespace

Planner::Planner(ScheduleSource& source, const RunwayOptions& runway)
    : source_(source), runway_(runway) {}

void Planner::Restart() {
  next_.reset();
  ended_ = false;
  head_waiting_ = full_ = false;
  next_group_ = groups_taken_;
}

Status Planner::Fill() {
  if (next_ || ended_) return {};
  FB_ASSIGN_OR_RETURN(std::optional<WorkItem> item, source_.Next());
  if (!item) {
    ended_ = true;
    return {};
  }
  next_.emplace();
  next_->sequence = sequence_++;
  next_->item = *std::move(item);
  if (next_->item.starts_group) ++next_group_;
  next_->item.group = next_group_ - 1;
  return {};
}

Result<const PlanItem*> Planner::Peek(Time now) {
  FB_RETURN_IF_ERROR(Fill());
  const PlanItem* none = nullptr;
  if (!next_) return none;
  const uint64_t group = next_->item.group;
  const bool is_head = group == groups_taken_;
  const uint64_t depth = static_cast<uint64_t>(runway_.depth());
  if (!HasRoom(group, depth) && !(is_head && head_waiting_)) return none;
  const auto steps_ahead = static_cast<int64_t>(group - groups_taken_);
  if (is_head && head_waiting_) {
    next_->urgency = Urgency::kDemand;
    next_->due = now;
  } else {
    next_->urgency = steps_ahead <= 1 ? Urgency::kSoon : Urgency::kFar;
    const auto step =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(runway_.step_s()));
    next_->due = last_taken_ + (steps_ahead + 1) * step;
  }
  return &*next_;
}

// Where steps are as short as it takes to wake a thread, a full runway is refilled by several
// batches at a time.
bool Planner::HasRoom(uint64_t group, uint64_t depth) {
  const uint64_t end = groups_taken_ + depth;
  const uint64_t room = end > group ? end - group : 0;
  const bool short_steps = runway_.step_s() < kShortStepS;
  const uint64_t wanted = full_ && short_steps ? std::max<uint64_t>(depth / kRefillShare, 1) : 1;
  full_ = room < wanted;
  return !full_;
}

PlanItem Planner::Pop() {
  FB_ASSERT(next_);
  PlanItem item = *std::move(next_);
  next_.reset();
  return item;
}

bool Planner::HeadWaiting() { return !std::exchange(head_waiting_, true); }

void Planner::OnTaken(Time now, Duration step, Duration wait) {
  const bool first = groups_taken_ == 0;
  ++groups_taken_;
  head_waiting_ = false;
  last_taken_ = now;
  if (!first) runway_.OnStep(step, wait);
}

}  // namespace forebay::plan
