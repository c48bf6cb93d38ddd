#include "order/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace forebay::order {
namespace {

TEST(Divider, is_exact_for_every_dividend) {
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t n = std::max<uint64_t>(1, random.Next() >> random.NextBelow(64));
    const uint64_t x = i % 4 == 0 ? random.NextBelow(1000) * n - random.NextBelow(2)
                                  : random.Next() >> random.NextBelow(64);
    ASSERT_EQ(Divider(n).Quotient(x), x / n) << x << " " << n;
  }
  for (const uint64_t n :
       {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (const uint64_t x : {uint64_t{0}, n - 1, n, n + 1, ~uint64_t{0}, ~uint64_t{0} - 1}) {
      ASSERT_EQ(Divider(n).Quotient(x), x / n) << x << " " << n;
    }
  }
}

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

TEST(Permutation, many_at_once_go_where_each_goes) {
  for (const uint64_t n : {1ULL, 200ULL, 257ULL, 65537ULL, 1000000000000ULL, ~0ULL}) {
    const Permutation permutation(n, DeriveKey(9, n));
    for (const uint64_t count : {0ULL, 1ULL, 3ULL, 4ULL, 5ULL, 1000ULL}) {
      std::vector<uint64_t> values;
      for (uint64_t i = 0; i < count; ++i) values.push_back(i * 77 % n);
      std::vector<uint64_t> expected;
      for (const uint64_t value : values) expected.push_back(permutation.At(value));
      permutation.AtEach(values);
      EXPECT_EQ(values, expected) << n;
    }
  }
}

TEST(Permutation, many_at_once_go_where_each_goes_where_halves_begin_and_end) {
  for (const uint64_t root : {17ULL, 1000ULL, 46341ULL, (1ULL << 26) - 1, 1ULL << 26}) {
    for (const uint64_t n : {root * root, root * root - 1, root * root - root + 1}) {
      const Permutation permutation(n, DeriveKey(11, n));
      std::vector<uint64_t> values;
      for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t begin = (i % 2 == 0 ? i : root - 1 - i % root) % root * root;
        for (const uint64_t value : {begin, begin + 1, begin + root - 1, begin + root}) {
          values.push_back(value % n);
        }
      }
      std::vector<uint64_t> expected;
      for (const uint64_t value : values) expected.push_back(permutation.At(value));
      permutation.AtEach(values);
      ASSERT_EQ(values, expected) << n;
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

}  // namespace
}  // namespace forebay::order
