#include "statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace forebay::cli {
namespace {

std::vector<float> Draws(size_t count, uint32_t seed, bool heavy) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<float> lognormal(std::log(0.130F), 0.413F);  // p99 / p50 = 2.6
  std::exponential_distribution<float> tail(4.0F);
  std::vector<float> draws(count);
  for (float& draw : draws) {
    draw = lognormal(random);
    if (heavy && random() % 100 == 0) draw += tail(random);
  }
  return draws;
}

// The slowest of groups of n, as a job that waits for n sees it.
std::vector<float> SlowestOfGroups(const std::vector<float>& draws, size_t n) {
  std::vector<float> slowest;
  for (size_t i = 0; i + n <= draws.size(); i += n) {
    slowest.push_back(*std::max_element(draws.begin() + static_cast<std::ptrdiff_t>(i),
                                        draws.begin() + static_cast<std::ptrdiff_t>(i + n)));
  }
  std::ranges::sort(slowest);
  return slowest;
}

TEST(Quantile, interpolates_and_ends_at_the_extremes) {
  const std::vector<float> values = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.875), 4.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 5);
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
}

TEST(SlowestOf, is_within_5_percent_of_what_groups_measure) {
  for (const bool heavy : {false, true}) {
    const std::vector<float> sample = Draws(heavy ? 200'000 : 20'000, 1, heavy);
    const std::vector<float> job = Draws(512 * 2000, 2, heavy);
    for (const uint64_t n : {1U, 7U, 64U, 512U}) {
      const std::vector<float> groups = SlowestOfGroups(job, n);
      const Slowest estimate = SlowestOf(sample, n);
      const double mean = Mean(groups), median = Quantile(groups, 0.5);
      EXPECT_NEAR(estimate.mean, mean, 0.05 * mean) << n << (heavy ? " heavy" : "");
      EXPECT_NEAR(estimate.median, median, 0.05 * median) << n << (heavy ? " heavy" : "");
      EXPECT_LE(estimate.low, estimate.median);
      EXPECT_LE(estimate.median, estimate.high);
      EXPECT_TRUE(estimate.enough);
    }
  }
}

TEST(SlowestOf, the_interval_holds_the_truth_about_nine_times_in_ten) {
  std::vector<float> truth = Draws(2'000'000, 99, false);
  std::ranges::sort(truth);
  const double median = Quantile(truth, std::exp2(-1.0 / 64));
  int inside = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> sample = Draws(2000, seed, false);
    const Slowest estimate = SlowestOf(sample, 64);
    inside += estimate.low <= median && median <= estimate.high ? 1 : 0;
  }
  EXPECT_GE(inside, 165);
  EXPECT_LE(inside, 195);
}

// 64 in flight, all of which a pause meets, once in a thousand requests.
TEST(SlowestOf, counts_slow_requests_that_come_together_as_they_come) {
  std::vector<float> sample = Draws(40'000, 1, false);
  std::mt19937_64 random(3);
  for (size_t i = 0; i < sample.size(); ++i) {
    if (random() % 1000 != 0) continue;
    for (size_t k = i; k < std::min(i + 64, sample.size()); ++k) sample[k] += 2;
  }
  for (const uint64_t n : {7U, 64U, 512U}) {
    const std::vector<float> groups = SlowestOfGroups(sample, n);
    const Slowest estimate = SlowestOf(sample, n);
    EXPECT_NEAR(estimate.mean, Mean(groups), 0.05 * Mean(groups)) << n;
  }
  // As if they were independent, most groups of 64 would have a slow one.
  EXPECT_LT(SlowestOf(sample, 64).median, 1);
  std::ranges::shuffle(sample, random);
  EXPECT_GT(SlowestOf(sample, 64).median, 2);
}

TEST(SlowestOf, small_samples_are_exact_where_counting_is_possible) {
  const std::vector<float> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(SlowestOf(values, 1).mean, 2.5);
  EXPECT_DOUBLE_EQ(SlowestOf(values, 2).mean, (2 * 1 + 3 * 2 + 4 * 3) / 6.0);
  EXPECT_DOUBLE_EQ(SlowestOf(values, 4).mean, 4);
  EXPECT_TRUE(std::isnan(SlowestOf(values, 5).mean));
  EXPECT_FALSE(SlowestOf(values, 5).enough);
  EXPECT_TRUE(std::isnan(SlowestOf({}, 7).median));
}

TEST(RateOverTime, counts_bytes_where_they_ended_and_shows_a_decay) {
  std::vector<double> ended;
  for (int i = 0; i < 300; ++i) ended.push_back(0.01 * i);     // 100 a second
  for (int i = 0; i < 60; ++i) ended.push_back(3 + 0.05 * i);  // then 20
  const std::vector<double> rates = RateOverTime(ended, 1000, 6, 6);
  EXPECT_NEAR(rates[0], 100'000, 1100);
  EXPECT_NEAR(rates[5], 20'000, 1100);
  EXPECT_NEAR(Decay(rates), 0.2, 0.02);
  EXPECT_NEAR(Decay(std::vector<double>(9, 5.0)), 1, 1e-9);
  EXPECT_EQ(RateOverTime(ended, 1, 0, 3), std::vector<double>(3, 0.0));
}

TEST(LogHistogram, has_every_value_in_one_bucket) {
  const std::vector<float> values = {0.0F, 0.0005F, 0.0015F, 0.02F, 500.0F};
  EXPECT_EQ(LogHistogram(values, 0.001, 1, 3), (std::vector<uint64_t>{3, 1, 1}));
}

}  // namespace
}  // namespace forebay::cli
