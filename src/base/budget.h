// A byte budget: arithmetic only. One owner thread. The feeder alone reserves from it, strictly in
// sequence order.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace forebay {

class Budget {
 public:
  explicit Budget(uint64_t limit_bytes) : limit_(limit_bytes) {}

  bool TryReserve(uint64_t bytes) {
    if (used_ > limit_ || bytes > limit_ - used_) return false;
    used_ += bytes;
    if (used_ > peak_) peak_ = used_;
    return true;
  }
  // For the one case that must not wait; may go over the limit.
  void ForceReserve(uint64_t bytes) {
    used_ += bytes;
    if (used_ > peak_) peak_ = used_;
  }
  void Release(uint64_t bytes) {
    FB_ASSERT(bytes <= used_);
    used_ -= bytes;
  }
  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace forebay
