// What a benchmark's numbers say. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forebay::cli {

// `sorted`: ascending. All of these: NaN when it is empty.

// 0 <= q <= 1, interpolated between neighbours.
double Quantile(std::span<const float> sorted, double q);
double Mean(std::span<const float> values);

// The slowest of `n` requests that a job waits for.
struct Slowest {
  double mean = 0;
  double median = 0;
  // Between these the median lies with 90% probability, for what the sample's size tells.
  double low = 0, high = 0;
  bool enough = false;  // the sample holds n requests several times over
};
// `in_order`: of the requests' beginnings. Where there are enough it is the largest of each n that
// follow one another: a pause of either end or of the link meets all that are in flight, so that
// slow requests come together, and fewer of the groups have one than if each came by itself. Of
// smaller samples it is what their order statistics tell of n drawn independently: the mean is the
// sum of x(i) C(i-1, n-1) / C(m, n), the median the quantile at 2^(-1/n).
Slowest SlowestOf(std::span<const float> in_order, uint64_t n);

// Bytes per second over time, in `buckets` equal parts of [0, wall_s]. Each request's bytes count
// where it ended. `ended_s`: in any order.
std::vector<double> RateOverTime(std::span<const double> ended_s, double bytes_each, double wall_s,
                                 size_t buckets);
// The last third's rate of a cell over its first third's: well under 1 where credits ran out.
double Decay(std::span<const double> rates);

// How many requests lie between the powers of 10^(1/per_decade) from `low_s` on; the last bucket
// has no upper edge.
std::vector<uint64_t> LogHistogram(std::span<const float> values, double low_s, int per_decade,
                                   size_t buckets);

}  // namespace forebay::cli
