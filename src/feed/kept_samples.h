// What ops made of samples as far as it is the same in every epoch, kept for the next one. An epoch
// asks for each sample once, in an order of its own: whatever is kept is as good as anything else,
// so what came first stays, and nothing is evicted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace forebay::feed {

// Thread-safe.
class KeptSamples {
 public:
  using Value = std::shared_ptr<const std::vector<std::byte>>;

  // Before the first sample. 0: nothing is kept.
  void SetLimit(uint64_t bytes) { limit_ = bytes; }
  // Whether there is room for any more.
  bool open() const { return used_ < limit_; }
  // Null: it is not there.
  Value Find(uint64_t sample) FB_EXCLUDES(mutex_);
  // Copies it, unless there is no room.
  void Offer(uint64_t sample, const std::vector<std::byte>& value) FB_EXCLUDES(mutex_);
  uint64_t used_bytes() const { return used_; }
  uint64_t hits() const { return hits_; }

 private:
  uint64_t limit_ = 0;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> hits_ = 0;
  Mutex mutex_;
  std::unordered_map<uint64_t, Value> values_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::feed
