#include "testing/faults/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace forebay::faults {
namespace {

constexpr const char* kS3 = "lognormal:median=130ms,p99=340ms";

// The q-quantile of `draws` maxima of `group` draws each.
double QuantileOfMaxima(const Latency& latency, int draws, int group, double q) {
  std::vector<double> maxima;
  for (int i = 0; i < draws; ++i) {
    double most = 0;
    for (int j = 0; j < group; ++j) {
      Random random(DeriveKey(static_cast<uint64_t>(i), static_cast<uint64_t>(j)));
      most = std::max(most, latency.Draw(random));
    }
    maxima.push_back(most);
  }
  std::sort(maxima.begin(), maxima.end());
  return maxima[static_cast<size_t>(q * static_cast<double>(maxima.size() - 1))];
}

TEST(Latency, lognormal_has_the_median_and_the_99th_percentile_it_names) {
  const auto latency = ParseLatency(kS3);
  ASSERT_TRUE(latency.ok());
  EXPECT_NEAR(QuantileOfMaxima(*latency, 200'000, 1, 0.5), 0.130, 0.001);
  EXPECT_NEAR(QuantileOfMaxima(*latency, 200'000, 1, 0.99), 0.340, 0.004);
}

TEST(Latency, the_slowest_of_many_lies_where_order_statistics_put_it) {
  const auto latency = ParseLatency(kS3);
  ASSERT_TRUE(latency.ok());
  // The median of the slowest of n is the 0.5^(1/n) quantile: z = 1.309 for 7 and 2.299 for 64.
  const double sigma = std::log(340.0 / 130.0) / kZ99;
  EXPECT_NEAR(QuantileOfMaxima(*latency, 40'000, 7, 0.5), 0.130 * std::exp(1.309 * sigma), 0.002);
  EXPECT_NEAR(QuantileOfMaxima(*latency, 10'000, 64, 0.5), 0.130 * std::exp(2.299 * sigma), 0.004);
  EXPECT_NEAR(0.130 * std::exp(1.309 * sigma), 0.224, 0.001);
  EXPECT_NEAR(0.130 * std::exp(2.299 * sigma), 0.336, 0.001);
}

TEST(Latency, uniform_and_constant_stay_within_their_bounds) {
  const auto uniform = ParseLatency("uniform:10ms-30ms");
  const auto constant = ParseLatency("constant:50us");
  ASSERT_TRUE(uniform.ok() && constant.ok());
  Random random(5);
  double least = 1;
  double most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double drawn = uniform->Draw(random);
    least = std::min(least, drawn);
    most = std::max(most, drawn);
    EXPECT_DOUBLE_EQ(constant->Draw(random), 50e-6);
  }
  EXPECT_GE(least, 0.010);
  EXPECT_LT(least, 0.0105);
  EXPECT_LE(most, 0.030);
  EXPECT_GT(most, 0.0295);
}

TEST(Latency, broken_texts_are_refused) {
  for (const char* text :
       {"", "fast", "constant", "constant:", "constant:5", "constant:-5ms", "constant:5 parsecs",
        "constant:99999m", "uniform:5ms", "uniform:9ms-5ms", "lognormal:median=1ms",
        "lognormal:p99=1ms,median=1ms", "lognormal:median=0,p99=1ms",
        "lognormal:median=2ms,p99=1ms", "lognormal:median=nanms,p99=1ms"}) {
    EXPECT_EQ(ParseLatency(text).code(), Code::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseLatency("none").ok());
}

TEST(Latency, durations_carry_their_unit) {
  EXPECT_DOUBLE_EQ(*ParseDuration("1.5m"), 90);
  EXPECT_DOUBLE_EQ(*ParseDuration("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(*ParseDuration("10ns"), 1e-8);
  EXPECT_DOUBLE_EQ(*ParseDuration("0"), 0);
}

}  // namespace
}  // namespace forebay::faults
