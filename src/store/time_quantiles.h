// The recent distribution of a time, in buckets of a few percent, older observations fading.
#pragma once

#include <array>
#include <cstddef>

#include "base/executor.h"

namespace forebay::store {

class TimeQuantiles {
 public:
  // Observations count half after `window` newer ones, about.
  explicit TimeQuantiles(double window = 512) : window_(window) {}

  void Add(Duration time);
  // One of which only this is known, that it takes longer than `time`: it counts as those do that
  // did.
  void AddLonger(Duration time);
  // Effectively: how many recent ones there are.
  double count() const { return count_; }
  // 0 < q <= 1: the upper edge of its bucket, exact to 9%; zero when empty.
  Duration At(double q) const;
  // What was seen so far weighs `share` of what it did: for when the times have changed.
  void Fade(double share);

 private:
  static size_t BucketOf(Duration time);
  static constexpr size_t kBuckets = 192;  // eight an octave from 50 us on: to 800 s
  std::array<float, kBuckets> buckets_{};
  double window_;
  double count_ = 0;
};

}  // namespace forebay::store
