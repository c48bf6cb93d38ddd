#include "base/keyed_random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace forebay {
namespace {

// The known answers that the authors' Random123 library publishes (tests/kat_vectors).
TEST(Philox, gives_the_published_answers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<uint32_t> Draw(const RandomPlace& place, int n) {
  KeyedRandom random(place);
  std::vector<uint32_t> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(random.NextU32());
  return numbers;
}

TEST(KeyedRandom, every_part_of_the_place_changes_every_number) {
  const std::vector<RandomPlace> places = {{7, "crop", 1, 5, 0},
                                           {8, "crop", 1, 5, 0},
                                           {7, "flip", 1, 5, 0},
                                           {7, "crop", 2, 5, 0},
                                           {7, "crop", 1, 6, 0},
                                           {7, "crop", 1, 5, 1},
                                           {7, "crop", 1, 5 + (1ULL << 32), 0},
                                           {8, "crop", 0, 5, 0}};
  std::set<uint32_t> all;
  for (const RandomPlace& place : places) {
    const auto numbers = Draw(place, 100);
    EXPECT_EQ(numbers, Draw(place, 100));
    all.insert(numbers.begin(), numbers.end());
  }
  EXPECT_GE(all.size(), places.size() * 100 - 1);
}

// Published in docs/order.md and compared in Python too: never to be changed.
TEST(KeyedRandom, gives_the_frozen_numbers_of_version_1) {
  EXPECT_EQ(Draw({7, "crop", 1, 5, 0}, 6),
            (std::vector<uint32_t>{0x61c34d8e, 0x8044816d, 0x559f23c5, 0xe4a60e0d, 0xa01aecae,
                                   0xd0bdb751}));
  EXPECT_EQ(Draw({0, "", 0, 0, 0}, 3), (std::vector<uint32_t>{0xa2afa6f6, 0x8f2b2de9, 0xf708d102}));
  EXPECT_EQ(Draw({~0ULL, "flip", ~0ULL, ~0ULL, ~0U}, 3),
            (std::vector<uint32_t>{0xaa19007f, 0xda48451e, 0xf9b4a4f2}));
  KeyedRandom random({7, "crop", 1, 5, 0});
  EXPECT_EQ(random.key(), 0x88f5ed533e4c7bU);
  EXPECT_EQ(random.NextU64(), 9242654642062708110U);
  EXPECT_EQ(random.NextDouble(), 0.8931587965540726);
  EXPECT_EQ(random.NextBelow(1000), 815U);
  EXPECT_EQ(random.NextUniform(-2, 3), 1.3982240479795855);
}

TEST(KeyedRandom, numbers_below_n_are_even) {
  KeyedRandom random({1, "even", 0, 0, 0});
  std::vector<int> seen(6, 0);
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) ++seen.at(random.NextBelow(6));
  double chi2 = 0;
  for (const int n : seen) chi2 += (n - kDraws / 6.0) * (n - kDraws / 6.0) / (kDraws / 6.0);
  EXPECT_LT(chi2, 20) << "5 degrees of freedom";
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(random.NextDouble(), 1.0);
    EXPECT_EQ(random.NextBelow(1), 0U);
    EXPECT_LT(random.NextBelow(~0ULL), ~0ULL);
  }
}

}  // namespace
}  // namespace forebay
