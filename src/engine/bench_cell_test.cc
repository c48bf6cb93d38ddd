#include "engine/bench_cell.h"

#include <gtest/gtest.h>

#include <vector>

namespace forebay::engine {
namespace {

TEST(SteadyRate, is_that_of_what_came_while_all_was_under_way) {
  // Nothing for half a second, then 1000 a second; 300 more came at the end, in 20 s.
  const std::vector<BytesAt> samples = {{0, 0}, {0.5, 0}, {1, 500}, {3, 2500}, {5, 4500}};
  EXPECT_NEAR(SteadyRate(samples, 4800, 25), 1000, 1e-9);
  EXPECT_NEAR(SteadyRate({}, 4800, 25), 192, 1e-9);
  EXPECT_NEAR(SteadyRate(std::vector<BytesAt>{{0.0, 0}}, 4800, 25), 192, 1e-9);
  EXPECT_EQ(SteadyRate({}, 0, 0), 0);
  // A request that failed took back what had come of it.
  EXPECT_NEAR(SteadyRate(std::vector<BytesAt>{{1, 500}, {2, 400}}, 100, 10), 10, 1e-9);
}

}  // namespace
}  // namespace forebay::engine
