#include "store/time_quantiles.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace forebay::store {
namespace {

constexpr double kFirstEdgeNs = 50'000;
constexpr double kPerOctave = 8;

}  // namespace

size_t TimeQuantiles::BucketOf(Duration time) {
  const double ratio = std::max(1.0, static_cast<double>(time.count()) / kFirstEdgeNs);
  // An edge belongs to its own bucket, whatever rounding made of it.
  const auto bucket = static_cast<size_t>(std::ceil(kPerOctave * std::log2(ratio) - 1e-6));
  return std::min(bucket, kBuckets - 1);
}

void TimeQuantiles::Add(Duration time) {
  buckets_[BucketOf(time)] += 1;
  count_ += 1;
  if (count_ >= 2 * window_) Fade(0.5);
}

void TimeQuantiles::AddLonger(Duration time) {
  const size_t first = BucketOf(time);
  const double above = std::accumulate(buckets_.begin() + first, buckets_.end(), 0.0);
  if (above < 1) {
    Add(time);
    return;
  }
  for (size_t i = first; i < kBuckets; ++i) {
    buckets_[i] += static_cast<float>(buckets_[i] / above);
  }
  count_ += 1;
  if (count_ >= 2 * window_) Fade(0.5);
}

Duration TimeQuantiles::At(double q) const {
  const double rank = q * count_;
  double seen = 0;
  size_t last = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    seen += buckets_[i];
    last = i;
    if (seen >= rank) break;
  }
  if (seen == 0) return {};
  return Duration(std::llround(kFirstEdgeNs * std::exp2(static_cast<double>(last) / kPerOctave)));
}

void TimeQuantiles::Fade(double share) {
  count_ = 0;
  for (float& n : buckets_) {
    n = static_cast<float>(n * share);
    if (n < 0.01F) n = 0;
    count_ += n;
  }
}

}  // namespace forebay::store
