#include "store/meter_store.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace forebay::store {
namespace {

constexpr double kFirstEdgeNs = 100'000;

}  // namespace

Duration LatencyHistogram::UpperEdge(size_t bucket) {
  return Duration(std::llround(kFirstEdgeNs * std::exp2(static_cast<double>(bucket) / 2)));
}

void LatencyHistogram::Add(Duration time) {
  const double ratio = std::max(1.0, static_cast<double>(time.count()) / kFirstEdgeNs);
  const auto bucket = static_cast<size_t>(std::ceil(2 * std::log2(ratio)));
  ++buckets_[std::min(bucket, kBuckets - 1)];
  ++count_;
  sum_ += time;
}

Duration LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return {};
  const auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<uint64_t>(rank, 1)) return UpperEdge(i);
  }
  return UpperEdge(kBuckets - 1);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

void VerbCounters::Add(const VerbCounters& other) {
  for (size_t i = 0; i < kCodes; ++i) {
    results[i] += other.results[i];
    retries[i] += other.retries[i];
  }
  bytes += other.bytes;
  first_byte.Add(other.first_byte);
  total.Add(other.total);
}

void StoreCounters::Add(const StoreCounters& other) {
  for (size_t i = 0; i < kVerbs; ++i) verbs[i].Add(other.verbs[i]);
  in_flight += other.in_flight;
  hedges.Add(other.hedges);
}

uint64_t VerbCounters::finished() const {
  return std::accumulate(results.begin(), results.end(), uint64_t{0});
}

uint64_t VerbCounters::retried() const {
  return std::accumulate(retries.begin(), retries.end(), uint64_t{0});
}

}  // namespace forebay::store
