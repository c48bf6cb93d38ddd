#include "order/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace forebay::order {
namespace {

Mixture MakeMixture(MixtureSpec spec) {
  auto mixture = Mixture::Make(std::move(spec));
  EXPECT_TRUE(mixture.ok()) << mixture.status().ToString();
  return *std::move(mixture);
}

TEST(Mixture, quotas_are_whole_and_the_largest_remainders_get_the_rest) {
  EXPECT_EQ(QuotasOf(std::vector<uint64_t>{7, 3}, 1000), (std::vector<uint64_t>{700, 300}));
  EXPECT_EQ(QuotasOf(std::vector<uint64_t>{1, 1, 1}, 1000), (std::vector<uint64_t>{334, 333, 333}));
  EXPECT_EQ(QuotasOf(std::vector<uint64_t>{5, 0}, 8), (std::vector<uint64_t>{8, 0}));
}

// Every source's numbers come once each, in order, whatever the pieces.
TEST(Mixture, no_source_skips_or_repeats_and_shares_are_exact) {
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    const size_t sources = 1 + random.NextBelow(5);
    MixtureSpec spec{.seed = random.Next(), .block = 20 + random.NextBelow(100), .pieces = {}};
    for (uint64_t start = 0; start < 1000; start += 1 + random.NextBelow(700)) {
      MixturePiece piece{start, std::vector<uint64_t>(sources)};
      for (uint64_t& weight : piece.weights) weight = 1 + random.NextBelow(4);
      spec.pieces.push_back(piece);
    }
    Mixture mixture = MakeMixture(spec);
    std::vector<uint64_t> counts(sources, 0);
    for (uint64_t position = 0; position < 1200; ++position) {
      if (position % 97 == 0) {
        ASSERT_EQ(mixture.CountsBefore(position), counts);
      }
      const Mixture::Pick pick = mixture.At(position);
      ASSERT_EQ(pick.index, counts.at(pick.source)++) << position;
      ASSERT_EQ(mixture.PositionOf(pick.source, pick.index), position);
    }
    // Far off, at once.
    const Mixture::Pick far = mixture.At(1ULL << 50);
    EXPECT_EQ(mixture.PositionOf(far.source, far.index), 1ULL << 50);
  }
}

TEST(Mixture, a_source_may_end_and_come_back) {
  Mixture mixture = MakeMixture({3, 10, {{0, {1, 1}}, {20, {1, 0}}, {40, {1, 1}}}});
  EXPECT_EQ(mixture.CountsBefore(20), (std::vector<uint64_t>{10, 10}));
  EXPECT_EQ(mixture.CountsBefore(40), (std::vector<uint64_t>{30, 10}));
  EXPECT_EQ(mixture.CountsBefore(60), (std::vector<uint64_t>{40, 20}));
  const auto position = mixture.PositionOf(1, 10);
  ASSERT_TRUE(position);
  EXPECT_GE(*position, 40U);
  Mixture ended = MakeMixture({3, 10, {{0, {1, 1}}, {20, {1, 0}}}});
  EXPECT_FALSE(ended.PositionOf(1, 10));
  EXPECT_TRUE(ended.PositionOf(1, 9));
}

TEST(Mixture, blocks_are_scattered_anew) {
  Mixture mixture = MakeMixture({3, 100, {{0, {1, 1}}}});
  int equal = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    equal += mixture.At(i).source == mixture.At(100 + i).source ? 1 : 0;
  }
  EXPECT_LT(equal, 80);
}

TEST(Mixture, what_makes_no_mixture_is_refused) {
  const std::vector<MixtureSpec> bad = {
      {0, 10, {}},
      {0, 10, {{0, {}}}},
      {0, 10, {{5, {1, 1}}}},
      {0, 10, {{0, {0, 0}}}},
      {0, 10, {{0, {1, 1}}, {0, {1, 2}}}},
      {0, 10, {{0, {1, 1}}, {7, {1}}}},
      {0, 10, {{0, {1000, 1}}}},
      {0, 0, {{0, {1, 1}}}},
      {0, kMixtureBlockMost + 1, {{0, {1, 1}}}},
      {0, 10, {{0, {~uint64_t{0}, 1}}}},
  };
  for (const MixtureSpec& spec : bad) {
    EXPECT_EQ(Mixture::Make(spec).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace forebay::order
