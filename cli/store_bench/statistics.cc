#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>

namespace forebay::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kZ90 = 1.6449;  // of a two-sided interval of 90%
// Samples a group of n, from which on an estimate of the slowest of n is worth something.
constexpr uint64_t kGroupsForEnough = 8;

// Of each `n` values that follow one another.
std::vector<float> LargestInARow(std::span<const float> values, size_t n) {
  std::vector<float> largest;
  largest.reserve(values.size() - n + 1);
  std::deque<size_t> falling;  // of the last n, those that nothing behind them exceeds
  for (size_t i = 0; i < values.size(); ++i) {
    while (!falling.empty() && values[falling.back()] <= values[i]) falling.pop_back();
    falling.push_back(i);
    if (falling.front() + n == i) falling.pop_front();
    if (i + 1 >= n) largest.push_back(values[falling.front()]);
  }
  return largest;
}

Slowest SlowestInARow(std::span<const float> in_order, uint64_t n) {
  std::vector<float> largest = LargestInARow(in_order, n);
  std::ranges::sort(largest);
  const double groups = static_cast<double>(in_order.size()) / static_cast<double>(n);
  const double spread = kZ90 * 0.5 / std::sqrt(groups);
  return {.mean = Mean(largest),
          .median = Quantile(largest, 0.5),
          .low = Quantile(largest, 0.5 - spread),
          .high = Quantile(largest, 0.5 + spread),
          .enough = true};
}

Slowest SlowestOfIndependent(std::span<const float> sorted, uint64_t n) {
  const auto m = static_cast<double>(sorted.size());
  const auto k = static_cast<double>(n);
  Slowest slowest{.mean = kNan, .median = kNan, .low = kNan, .high = kNan};
  if (n == 0 || sorted.empty()) return slowest;
  const double q = std::exp2(-1.0 / k);
  slowest.median = Quantile(sorted, q);
  const double spread = kZ90 * std::sqrt(q * (1 - q) / m);
  slowest.low = Quantile(sorted, q - spread);
  slowest.high = Quantile(sorted, q + spread);
  if (sorted.size() < n) return slowest;
  // The weight of x(i) is the chance that it is the largest of n: n/m for the largest of all, and
  // from each to the one below times (i - n) / (i - 1).
  double weight = k / m;
  double mean = 0;
  for (size_t i = sorted.size(); i >= n; --i) {
    mean += weight * sorted[i - 1];
    const auto rank = static_cast<double>(i);
    if (i > 1) weight *= (rank - k) / (rank - 1);
  }
  slowest.mean = mean;
  return slowest;
}

}  // namespace

double Quantile(std::span<const float> sorted, double q) {
  if (sorted.empty()) return kNan;
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

double Mean(std::span<const float> values) {
  if (values.empty()) return kNan;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Slowest SlowestOf(std::span<const float> in_order, uint64_t n) {
  if (n > 0 && in_order.size() / kGroupsForEnough >= n) return SlowestInARow(in_order, n);
  std::vector<float> sorted(in_order.begin(), in_order.end());
  std::ranges::sort(sorted);
  return SlowestOfIndependent(sorted, n);
}

std::vector<double> RateOverTime(std::span<const double> ended_s, double bytes_each, double wall_s,
                                 size_t buckets) {
  std::vector<double> rates(buckets, 0.0);
  if (buckets == 0 || !(wall_s > 0)) return rates;
  const double width = wall_s / static_cast<double>(buckets);
  for (const double at : ended_s) {
    const auto bucket = static_cast<size_t>(std::max(0.0, at / width));
    rates[std::min(bucket, buckets - 1)] += bytes_each / width;
  }
  return rates;
}

double Decay(std::span<const double> rates) {
  const size_t third = rates.size() / 3;
  if (third == 0) return 1;
  const auto sum = [](std::span<const double> part) {
    return std::accumulate(part.begin(), part.end(), 0.0);
  };
  const double first = sum(rates.first(third));
  return first > 0 ? sum(rates.last(third)) / first : 1;
}

std::vector<uint64_t> LogHistogram(std::span<const float> values, double low_s, int per_decade,
                                   size_t buckets) {
  std::vector<uint64_t> counts(buckets, 0);
  if (buckets == 0) return counts;
  for (const float value : values) {
    const double place = value > low_s ? std::log10(value / low_s) * per_decade : 0;
    counts[std::min(static_cast<size_t>(place), buckets - 1)] += 1;
  }
  return counts;
}

}  // namespace forebay::cli
