#include "store/limit_store.h"

#include <fmt/core.h>

#include "base/assert.h"

namespace forebay::store {

LimitStore::LimitStore(std::shared_ptr<ObjectStore> inner, LimitOptions options)
    : Decorator(std::move(inner)), options_(options) {
  FB_ASSERT(options_.in_flight > options_.kept_for_demand);
}

bool LimitStore::MayBegin(Priority priority) const {
  const size_t kept = priority == Priority::kDemand ? 0 : options_.kept_for_demand;
  return in_flight_ + kept < options_.in_flight;
}

void LimitStore::Begin(Op& op) {
  ++in_flight_;
  if (op.timer != 0) executor().CancelTimer(std::exchange(op.timer, 0));
  op.Begin(*this);
}

void LimitStore::Enqueue(std::unique_ptr<Op> made, Time deadline) {
  FB_ASSERT(executor().InThread());
  made->id = ++last_id_;
  Op& op = *(ops_[made->id] = std::move(made));
  // Whoever waits at this priority waits because nothing may begin: no order is broken.
  if (MayBegin(op.priority)) {
    Begin(op);
    return;
  }
  ++waiting_;
  if (waiting_ > options_.queue_limit) {
    Refuse(op, Status(Code::kResourceExhausted,
                      fmt::format("{} requests wait already", options_.queue_limit)));
    return;
  }
  queues_[static_cast<size_t>(op.priority)].push_back(op.id);
  if (deadline == kNever) return;
  op.timer = executor().PostAt(deadline, [this, &op] {
    op.timer = 0;
    Refuse(op, Status(Code::kDeadlineExceeded,
                      "the deadline passed while the request waited for "
                      "others to finish"));
  });
}

void LimitStore::Refuse(Op& op, Status status) {
  op.over = true;
  --waiting_;
  if (op.timer != 0) executor().CancelTimer(std::exchange(op.timer, 0));
  executor().Post([this, id = op.id, why = std::move(status)]() mutable {
    const std::unique_ptr<Op> self = Take(id);
    self->Fail(std::move(why));
  });
}

void LimitStore::Finished() {
  --in_flight_;
  Admit();
}

void LimitStore::Admit() {
  for (size_t i = 0; i < kPriorities; ++i) {
    std::deque<OpId>& queue = queues_[i];
    while (!queue.empty() && MayBegin(static_cast<Priority>(i))) {
      const auto found = ops_.find(queue.front());
      queue.pop_front();
      if (found == ops_.end() || found->second->over || found->second->inner_op != 0) continue;
      --waiting_;
      Begin(*found->second);
    }
  }
}

std::unique_ptr<LimitStore::Op> LimitStore::Take(OpId id) {
  auto node = ops_.extract(id);
  FB_ASSERT(!node.empty());
  return std::move(node.mapped());
}

void LimitStore::Promote(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end() || found->second->over) return;
  Op& op = *found->second;
  if (op.inner_op != 0) {
    inner().Promote(op.inner_op);
    return;
  }
  if (op.priority == Priority::kDemand) return;
  op.priority = Priority::kDemand;
  op.RaiseToDemand();
  // It stays in its old queue as well; whichever comes first begins it.
  queues_[static_cast<size_t>(Priority::kDemand)].push_back(id);
  Admit();
}

void LimitStore::Cancel(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end() || found->second->over) return;
  Op& op = *found->second;
  if (op.inner_op != 0) {
    inner().Cancel(op.inner_op);
  } else {
    Refuse(op, Status(Code::kCancelled, "cancelled while it waited for others to finish"));
  }
}

}  // namespace forebay::store
