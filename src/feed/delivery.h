// The queue between the coordinator and the consumer's thread: whole batches, in order. Bounded by
// the runway (what is in it is still in the budget).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/executor.h"
#include "base/mutex.h"
#include "feed/feeder.h"

namespace forebay::feed {

// Thread-safe.
class Delivery {
 public:
  void Push(ReadyGroup group) FB_EXCLUDES(mutex_);
  std::optional<ReadyGroup> TryTake() FB_EXCLUDES(mutex_);
  // True when TryTake has something, or after Close; false at the deadline.
  bool WaitUntil(Time deadline) FB_EXCLUDES(mutex_);
  // Drops what is there; groups of older generations no longer come in.
  void Reset(uint64_t generation) FB_EXCLUDES(mutex_);
  void Close() FB_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<ReadyGroup> queue_ FB_GUARDED_BY(mutex_);
  uint64_t generation_ FB_GUARDED_BY(mutex_) = 0;
  bool closed_ FB_GUARDED_BY(mutex_) = false;
};

}  // namespace forebay::feed
