#include "plan/runway.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace forebay::plan {
namespace {

using std::chrono::duration_cast;

Duration S(double seconds) {
  return duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Feeds `steps` steps of 7 parts with lognormal latency into the controller.
void Feed(Runway& runway, int steps, double median_s, double step_s, double decode_s,
          uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < steps; ++i) {
    double slowest = 0;
    for (int part = 0; part < 7; ++part) {
      const double u = 1 - random.NextDouble();
      const double z = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307 * random.NextDouble());
      const double latency = median_s * std::exp(0.413 * z);
      slowest = std::max(slowest, latency);
      runway.OnPart(S(latency));
    }
    runway.OnGroupFetched(S(slowest), 7);
    runway.OnGroupDecoded(S(decode_s));
    runway.OnStep(S(step_s), Duration{});
  }
}

TEST(Runway, off_stays_off_and_a_fixed_one_follows_the_step_time) {
  Runway off({.fixed_s = 0});
  Feed(off, 20, 0.13, 0.3, 0.2, 1);
  EXPECT_EQ(off.depth(), 0);
  Runway fixed({.fixed_s = 1.0});
  Feed(fixed, 20, 0.13, 0.3, 0.2, 1);
  EXPECT_EQ(fixed.depth(), 4);
  Feed(fixed, 40, 0.13, 0.1, 0.05, 2);
  EXPECT_EQ(fixed.depth(), 10);
}

TEST(Runway, guesses_no_depth_before_a_step_was_measured) {
  for (const double fixed_s : {30.0, -1.0}) {
    Runway runway({.fixed_s = fixed_s});
    for (int i = 0; i < 40; ++i) {
      for (int part = 0; part < 7; ++part) runway.OnPart(S(0.2));
      runway.OnGroupFetched(S(0.2), 7);
      runway.OnGroupDecoded(S(0.001));
    }
    EXPECT_LE(runway.depth(), 4);
  }
}

TEST(Runway, auto_grows_with_latency_and_shrinks_with_it) {
  Runway runway({});
  Feed(runway, 60, 0.13, 0.3, 0.2, 1);
  const int normal = runway.depth();
  EXPECT_GE(normal, 2);
  EXPECT_LE(normal, 4);
  Feed(runway, 4, 0.39, 0.3, 0.2, 2);
  EXPECT_GT(runway.depth(), normal) << "four steps tell that the latency has tripled";
  Feed(runway, 60, 0.39, 0.3, 0.2, 3);
  EXPECT_LE(runway.depth(), 7);
  Feed(runway, 60, 0.13, 0.3, 0.2, 4);
  EXPECT_LE(runway.depth(), normal + 1);
}

TEST(Runway, a_fast_store_and_a_slow_step_need_one_batch) {
  Runway runway({});
  Feed(runway, 40, 0.002, 0.5, 0.01, 1);
  EXPECT_EQ(runway.depth(), 1);
}

TEST(Runway, does_not_run_to_the_limit_where_decoding_is_slower_than_the_step) {
  Runway runway({});
  Feed(runway, 60, 0.13, 0.1, 0.3, 1);
  EXPECT_LE(runway.depth(), 8) << "no depth hides a decoder that is too slow";
}

TEST(Runway, is_one_batch_longer_while_gets_have_to_be_sent_again) {
  Runway runway({});
  Feed(runway, 100, 0.13, 0.3, 0.2, 1);
  const int before = runway.depth();
  runway.OnPart(S(0.13), true);
  Feed(runway, 8, 0.13, 0.3, 0.2, 2);
  EXPECT_EQ(runway.depth(), before + 1);
  Feed(runway, 300, 0.13, 0.3, 0.2, 1);
  EXPECT_EQ(runway.depth(), before);
}

TEST(Runway, says_its_numbers) {
  Runway runway({});
  Feed(runway, 60, 0.13, 0.3, 0.2, 1);
  const std::string text = runway.Explain();
  EXPECT_NE(text.find("slowest of 7 GETs"), std::string::npos) << text;
  EXPECT_NE(text.find("batches of 300 ms"), std::string::npos) << text;
}

TEST(Runway, waits_that_the_model_did_not_foresee_add_depth_for_a_while) {
  Runway runway({});
  Feed(runway, 60, 0.13, 0.3, 0.2, 1);
  const int before = runway.depth();
  for (int i = 0; i < 20; ++i) runway.OnStep(S(0.3), S(0.1));
  EXPECT_GT(runway.depth(), before);
  Feed(runway, 400, 0.13, 0.3, 0.2, 2);
  EXPECT_LE(runway.depth(), before + 1);
}

}  // namespace
}  // namespace forebay::plan
