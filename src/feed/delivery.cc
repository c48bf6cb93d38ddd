#include "feed/delivery.h"

#include <utility>

namespace forebay::feed {

void Delivery::Push(ReadyGroup group) {
  {
    const MutexLock lock(mutex_);
    if (closed_ || group.generation != generation_) return;
    queue_.push_back(std::move(group));
  }
  arrived_.notify_all();
}

std::optional<ReadyGroup> Delivery::TryTake() {
  const MutexLock lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  std::optional<ReadyGroup> group(std::move(queue_.front()));
  queue_.pop_front();
  return group;
}

bool Delivery::WaitUntil(Time deadline) {
  const MutexLock lock(mutex_);
  while (queue_.empty() && !closed_) {
    if (arrived_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      return !queue_.empty() || closed_;
    }
  }
  return true;
}

void Delivery::Reset(uint64_t generation) {
  std::deque<ReadyGroup> dropped;  // destroyed after the lock is gone
  const MutexLock lock(mutex_);
  dropped.swap(queue_);
  generation_ = generation;
}

void Delivery::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    queue_.clear();
  }
  arrived_.notify_all();
}

}  // namespace forebay::feed
