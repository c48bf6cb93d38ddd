#include "advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace forebay::cli {
namespace {

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

// The rate of a server that takes `first_byte_s` for each request, gives each connection
// `connection` bytes a second and all together `line`; beyond `crowd` requests in flight it slows.
struct Server {
  double first_byte_s, connection, line;
  double crowd = 1e9;
  double per_request_s = 0;  // of CPU, on one core

  double Rate(const Shape& shape) const {
    const auto range = static_cast<double>(shape.range_bytes);
    const double depth = shape.in_flight;
    const double alone = range / (first_byte_s + range / connection);
    double rate = std::min(line, depth * alone);
    if (per_request_s > 0) rate = std::min(rate, range / per_request_s);
    if (depth > crowd) rate *= std::sqrt(crowd / depth);
    return rate;
  }
};

std::vector<Measured> Sweep(const Server& server, const ShapeLimits& limits) {
  std::vector<Measured> measured;
  const auto measure = [&](const Shape& shape) {
    measured.push_back({.range_bytes = shape.range_bytes,
                        .in_flight = shape.in_flight,
                        .bytes_per_s = server.Rate(shape),
                        .slowest_of_512_s = 2.5 * server.first_byte_s});
  };
  for (const Shape& shape : FirstShapes(false, limits)) measure(shape);
  for (int more = 0; more < 12; ++more) {
    const auto next = NextShape(measured, limits);
    if (!next) break;
    measure(*next);
  }
  return measured;
}

double Exhaustive(const Server& server, const ShapeLimits& limits) {
  double best = 0;
  for (uint64_t range = 65'536; range <= limits.range_max; range *= 2) {
    for (uint32_t depth = 1; depth <= limits.in_flight_max; depth *= 2) {
      if (range > limits.buffer_bytes / depth) continue;
      best = std::max(best, server.Rate({range, depth}));
    }
  }
  return best;
}

TEST(Advice, reaches_95_percent_of_an_exhaustive_sweep_on_unlike_servers) {
  const Server servers[] = {
      {.first_byte_s = 0.130, .connection = 90e6, .line = 12e9},               // S3, 100 Gbit/s
      {.first_byte_s = 0.130, .connection = 90e6, .line = 1.2e9},              // S3, 10 Gbit/s
      {.first_byte_s = 0.0005, .connection = 2e9, .line = 3e9},                // in the same rack
      {.first_byte_s = 0.010, .connection = 150e6, .line = 1e9, .crowd = 16},  // a small server
      {.first_byte_s = 0.0003, .connection = 4e9, .line = 6e9, .per_request_s = 2e-4},
  };
  const ShapeLimits limits{
      .range_max = 32 << 20, .in_flight_max = 1024, .buffer_bytes = 4ULL << 30};
  for (const Server& server : servers) {
    const auto measured = Sweep(server, limits);
    const auto advice = AdviceFrom(measured);
    ASSERT_TRUE(advice.has_value());
    const Shape shape{advice->recommended.range_bytes, advice->recommended.in_flight};
    EXPECT_GE(server.Rate(shape), 0.95 * Exhaustive(server, limits))
        << server.first_byte_s << ": " << shape.range_bytes << " x " << shape.in_flight;
    EXPECT_LE(measured.size(), 32u);
  }
}

TEST(Advice, takes_the_least_memory_in_flight_that_gives_nearly_as_much) {
  const std::vector<Measured> measured = {
      {.range_bytes = 8 << 20, .in_flight = 128, .bytes_per_s = kGiB, .slowest_of_512_s = 2},
      {.range_bytes = 8 << 20,
       .in_flight = 32,
       .bytes_per_s = 0.99 * kGiB,
       .slowest_of_512_s = 0.43},
      {.range_bytes = 1 << 20,
       .in_flight = 128,
       .bytes_per_s = 0.9 * kGiB,
       .slowest_of_512_s = 0.3},
      {.range_bytes = 4096, .in_flight = 1000, .bytes_per_s = 3 * kGiB, .slowest_of_512_s = 0.1}};
  const auto advice = AdviceFrom(measured);
  ASSERT_TRUE(advice.has_value());
  EXPECT_EQ(advice->best.in_flight, 128u);
  EXPECT_EQ(advice->recommended.in_flight, 32u);
  EXPECT_NEAR(advice->runway_s, 0.5, 1e-9);
  EXPECT_FALSE(AdviceFrom({}).has_value());
}

TEST(Advice, a_shape_that_was_lucky_once_is_looked_at_again_and_counts_with_its_median) {
  const auto one = [](uint32_t depth, double rate) {
    return Measured{.range_bytes = 8 << 20, .in_flight = depth, .bytes_per_s = rate * kGiB};
  };
  std::vector<Measured> measured = {one(8, 1.0), one(16, 1.5), one(32, 1.3), one(64, 1.4),
                                    one(128, 1.29)};
  measured.push_back({.range_bytes = 4096, .in_flight = 512, .bytes_per_s = 9 * kGiB});
  const std::vector<Shape> wanted = {{8 << 20, 16}, {8 << 20, 64}, {8 << 20, 32}, {8 << 20, 128}};
  EXPECT_EQ(Finalists(measured), wanted);
  for (const double rate : {1.1, 1.15}) {
    measured.push_back(one(16, rate));
    measured.push_back(one(64, 1.4));
    measured.push_back(one(32, 1.35));
  }
  const auto advice = AdviceFrom(measured);
  ASSERT_TRUE(advice.has_value());
  EXPECT_EQ(advice->best.in_flight, 64u);
  EXPECT_NEAR(advice->best.bytes_per_s, 1.4 * kGiB, 1);
  EXPECT_EQ(advice->recommended.in_flight, 64u);  // 1.35 is less than 98% of it
  EXPECT_TRUE(Finalists({}).empty());
}

TEST(Advice, a_sweep_keeps_to_its_limits_and_ends) {
  const Server endless{.first_byte_s = 0.1, .connection = 50e6, .line = 1e15};
  const ShapeLimits limits{.range_max = 8 << 20, .in_flight_max = 256, .buffer_bytes = 1ULL << 30};
  std::vector<Measured> measured;
  for (const Shape& shape : FirstShapes(false, limits)) {
    measured.push_back({shape.range_bytes, shape.in_flight, endless.Rate(shape)});
  }
  int more = 0;
  for (auto next = NextShape(measured, limits); next; next = NextShape(measured, limits)) {
    ASSERT_LE(next->range_bytes, limits.range_max);
    ASSERT_LE(next->in_flight, limits.in_flight_max);
    ASSERT_LE(next->range_bytes * next->in_flight, limits.buffer_bytes);
    measured.push_back({next->range_bytes, next->in_flight, endless.Rate(*next)});
    ASSERT_LT(++more, 40);
  }
  EXPECT_GT(more, 0);
}

}  // namespace
}  // namespace forebay::cli
