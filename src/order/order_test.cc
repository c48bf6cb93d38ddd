#include "order/order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/random.h"
#include "order/permutation.h"

namespace forebay::order {
namespace {

TEST(Permutation, is_a_bijection_with_its_inverse_at_every_awkward_size) {
  for (const uint64_t n : {0ULL,    1ULL,    2ULL,    3ULL,     4ULL,     5ULL,     7ULL,
                           15ULL,   16ULL,   17ULL,   255ULL,   256ULL,   257ULL,   258ULL,
                           1023ULL, 1024ULL, 1025ULL, 65535ULL, 65536ULL, 65537ULL, 99991ULL}) {
    const Permutation permutation(n, DeriveKey(7, n));
    std::vector<bool> seen(n, false);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t j = permutation.At(i);
      ASSERT_LT(j, n);
      ASSERT_FALSE(seen[j]) << n << " " << i;
      seen[j] = true;
      ASSERT_EQ(permutation.Inverse(j), i);
    }
  }
}

TEST(Permutation, holds_at_a_trillion_and_beyond) {
  for (const uint64_t n : {1000000000000ULL, (1ULL << 62) + 1, ~0ULL}) {
    const Permutation permutation(n, 3);
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t at = i * (n / 1000);
      ASSERT_LT(permutation.At(at), n);
      ASSERT_EQ(permutation.Inverse(permutation.At(at)), at);
    }
  }
}

// Version 1's outputs: a change here changes the order of every run in the world.
TEST(Permutation, outputs_of_version_1_are_frozen) {
  const Permutation small(10, 1);
  const Permutation large(1000000, 1);
  std::vector<uint64_t> got;
  for (uint64_t i = 0; i < 5; ++i) got.push_back(small.At(i));
  for (uint64_t i = 0; i < 5; ++i) got.push_back(large.At(i));
  EXPECT_EQ(got, (std::vector<uint64_t>{3, 4, 6, 9, 8, 379776, 736223, 328709, 374292, 125442}));
}

TEST(Permutation, neighbours_do_not_stay_neighbours) {
  constexpr uint64_t kN = 100000;
  const Permutation permutation(kN, 5);
  std::vector<int> buckets(64, 0);
  for (uint64_t i = 0; i + 1 < kN; ++i) {
    const uint64_t difference = (permutation.At(i + 1) + kN - permutation.At(i)) % kN;
    ++buckets[difference * 64 / kN];
  }
  double chi2 = 0;
  const double expected = (kN - 1) / 64.0;
  for (const int count : buckets) chi2 += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi2, 120) << "63 degrees of freedom";
}

TEST(EpochOrder, depends_on_seed_and_epoch_but_never_on_their_sum) {
  const OrderSpec seed1{1000, 1, true};
  const OrderSpec seed2{1000, 2, true};
  const EpochOrder a(seed1, 1);
  const EpochOrder b(seed2, 0);
  const EpochOrder again(seed1, 1);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    equal += a.SampleAt(i) == b.SampleAt(i) ? 1 : 0;
    ASSERT_EQ(a.SampleAt(i), again.SampleAt(i));
    ASSERT_EQ(a.PositionOf(a.SampleAt(i)), i);
  }
  EXPECT_LT(equal, 10);
}

std::vector<uint64_t> Positions(uint64_t samples, uint64_t batch, uint64_t world, bool drop_last) {
  std::vector<uint64_t> real;
  uint64_t position = 0;
  while (true) {
    std::set<uint64_t> rows_per_rank;
    uint64_t advance = 0;
    for (uint64_t rank = 0; rank < world; ++rank) {
      const auto slice = SliceAt({batch, world, rank, drop_last}, samples, position);
      if (!slice) return real;
      rows_per_rank.insert(slice->rows);
      advance = slice->global_samples;
      for (uint64_t i = 0; i < slice->rows; ++i) {
        const Row row = RowOf(*slice, samples, i);
        if (!row.pad) real.push_back(row.position);
      }
    }
    EXPECT_EQ(rows_per_rank.size(), 1u) << "every rank takes equal steps";
    position += advance;
  }
}

TEST(SliceAt, every_position_comes_exactly_once_on_any_world) {
  for (const uint64_t world : {1ULL, 2ULL, 3ULL, 4ULL}) {
    for (const uint64_t samples : {1ULL, 2ULL, 7ULL, 24ULL, 25ULL}) {
      const auto padded = Positions(samples, 2, world, false);
      ASSERT_EQ(padded.size(), samples);
      for (uint64_t i = 0; i < samples; ++i) ASSERT_EQ(padded[i], i);
      const auto dropped = Positions(samples, 2, world, true);
      ASSERT_EQ(dropped.size(), samples / (2 * world) * (2 * world));
    }
  }
}

TEST(SliceAt, a_global_batch_has_the_same_members_on_every_world) {
  const auto one = SliceAt({8, 1, 0, true}, 100, 16);
  const auto two = SliceAt({4, 2, 1, true}, 100, 16);
  EXPECT_EQ(RowOf(*one, 100, 5).position, RowOf(*two, 100, 1).position);
}

}  // namespace
}  // namespace forebay::order
