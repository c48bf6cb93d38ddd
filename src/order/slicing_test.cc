#include "order/slicing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace forebay::order {
namespace {

struct Walked {
  std::vector<uint64_t> real;  // positions, in the order of batches and ranks
  uint64_t pads = 0;
  uint64_t batches = 0;
};

// All ranks side by side through an epoch.
Walked Walk(uint64_t samples, uint64_t batch, uint64_t world, Tail tail) {
  Walked walked;
  uint64_t position = 0;
  while (true) {
    std::vector<uint64_t> rows_of_ranks;
    uint64_t advance = 0;
    for (uint64_t rank = 0; rank < world; ++rank) {
      const auto slice = SliceAt({batch, world, rank, tail}, samples, position);
      if (!slice) {
        EXPECT_EQ(rank, 0U) << "all ranks end together";
        return walked;
      }
      EXPECT_EQ(slice->first_position, position);
      rows_of_ranks.push_back(slice->rows);
      advance = slice->global_samples;
      for (uint64_t i = 0; i < slice->rows; ++i) {
        const Row row = RowOf(*slice, samples, i);
        EXPECT_LT(row.position, samples);
        row.pad ? (void)++walked.pads : walked.real.push_back(row.position);
      }
    }
    const auto [least, most] = std::ranges::minmax(rows_of_ranks);
    EXPECT_LE(most - least, tail == Tail::kRagged ? 1U : 0U);
    ++walked.batches;
    position += advance;
  }
}

TEST(Slicing, every_position_comes_exactly_once_for_any_size_world_batch_and_tail) {
  for (uint64_t samples = 0; samples <= 200; ++samples) {
    std::vector<uint64_t> all(samples);
    std::iota(all.begin(), all.end(), uint64_t{0});
    for (uint64_t world = 1; world <= 8; ++world) {
      for (uint64_t batch = 1; batch <= 7; ++batch) {
        const uint64_t global = batch * world;
        for (const Tail tail : {Tail::kDrop, Tail::kPad, Tail::kRagged}) {
          const Walked walked = Walk(samples, batch, world, tail);
          const uint64_t kept = tail == Tail::kDrop ? samples / global * global : samples;
          ASSERT_EQ(walked.real, std::vector<uint64_t>(
                                     all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept)));
          ASSERT_EQ(walked.batches, BatchesFrom({batch, world, 0, tail}, samples, 0));
          uint64_t taken = 0;
          for (uint64_t offset = 0; offset < 3; ++offset) {
            const Slicing third{batch, world, 0, tail, 3, offset};
            taken += BatchesFrom(third, samples, 0);
            // From the second batch on: one less for whom the first one is.
            const uint64_t rest = BatchesFrom(third, samples, global);
            ASSERT_EQ(BatchesFrom(third, samples, 0) - rest,
                      offset == 0 && walked.batches > 0 ? 1U : 0U);
          }
          ASSERT_EQ(taken, walked.batches);
          ASSERT_EQ(walked.pads,
                    tail == Tail::kPad ? (world - samples % global % world) % world : 0);
        }
      }
    }
  }
}

TEST(Slicing, a_global_batch_has_the_same_members_on_every_world) {
  const auto one = SliceAt({8, 1, 0, Tail::kDrop}, 100, 16);
  const auto two = SliceAt({4, 2, 1, Tail::kDrop}, 100, 16);
  EXPECT_EQ(RowOf(*one, 100, 5).position, RowOf(*two, 100, 1).position);
}

}  // namespace
}  // namespace forebay::order
