#include "order/block_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "order/epoch_order.h"

namespace forebay::order {
namespace {

std::shared_ptr<const BlockTable> Share(BlockTable table) {
  return std::make_shared<const BlockTable>(std::move(table));
}

void ExpectBijection(BlockOrder order, uint64_t samples) {
  std::vector<bool> seen(samples, false);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t sample = order.At(i);
    ASSERT_LT(sample, samples);
    ASSERT_FALSE(seen[sample]) << i;
    seen[sample] = true;
    ASSERT_EQ(order.PositionOf(sample), i);
  }
}

TEST(BlockTable, finds_the_block_of_every_sample) {
  const std::vector<uint64_t> sizes = {0, 3, 0, 0, 5, 1, 0};
  const BlockTable ragged = BlockTable::Ragged(sizes);
  const BlockTable uniform = BlockTable::Uniform(10, 4);
  EXPECT_EQ(ragged.samples(), 9U);
  EXPECT_EQ(uniform.blocks(), 3U);
  EXPECT_EQ(uniform.SizeOf(2), 2U);
  for (const BlockTable* table : {&ragged, &uniform}) {
    for (uint64_t sample = 0; sample < table->samples(); ++sample) {
      const uint64_t block = table->BlockOf(sample);
      EXPECT_GE(sample, table->FirstOf(block));
      EXPECT_LT(sample, table->FirstOf(block) + table->SizeOf(block));
    }
  }
}

TEST(BlockOrder, is_exact_for_every_size_window_stream_count_and_run) {
  for (uint64_t samples = 0; samples <= 130; samples += samples < 12 ? 1 : 7) {
    for (const uint64_t block : {1ULL, 3ULL, 8ULL, 500ULL}) {
      for (const uint64_t window : {1ULL, 2ULL, 5ULL, 100ULL}) {
        for (const uint64_t streams : {1ULL, 2ULL, 3ULL, 8ULL}) {
          for (const uint64_t run : {1ULL, 4ULL, 64ULL}) {
            ExpectBijection(BlockOrder(Share(BlockTable::Uniform(samples, block)),
                                       {window, streams, run}, DeriveKey(samples, block)),
                            samples);
          }
        }
      }
    }
  }
}

TEST(BlockOrder, is_exact_for_blocks_of_any_sizes_empty_ones_too) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> sizes(random.NextBelow(20));
    for (uint64_t& size : sizes) size = random.NextBelow(3) == 0 ? 0 : random.NextBelow(30);
    const auto table = Share(BlockTable::Ragged(sizes));
    ExpectBijection(
        BlockOrder(table,
                   {1 + random.NextBelow(6), 1 + random.NextBelow(4), 1 + random.NextBelow(9)},
                   random.Next()),
        table->samples());
  }
}

TEST(BlockOrder, an_equal_table_gives_an_equal_order_however_it_is_kept) {
  const std::vector<uint64_t> sizes = {10, 10, 10, 10, 10, 10, 10, 3};
  BlockOrder ragged(Share(BlockTable::Ragged(sizes)), {2, 2, 4}, 9);
  BlockOrder uniform(Share(BlockTable::Uniform(73, 10)), {2, 2, 4}, 9);
  for (uint64_t i = 0; i < 73; ++i) EXPECT_EQ(ragged.At(i), uniform.At(i));
}

TEST(BlockOrder, each_stream_has_about_w_blocks_open) {
  constexpr uint64_t kBlock = 100;
  constexpr uint64_t kRun = 50;
  constexpr uint64_t kStreams = 4;
  const auto table = Share(BlockTable::Uniform(100'000, kBlock));
  BlockOrder order(table, {8, kStreams, kRun}, 5);
  // One rank of four, with a batch as long as a run: it reads one stream.
  std::set<uint64_t> blocks;
  std::set<uint64_t> batch_blocks;
  constexpr uint64_t kBatches = 16;  // of 50: one window of 800
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    batch_blocks.clear();
    for (uint64_t i = 0; i < kRun; ++i) {
      const uint64_t block = table->BlockOf(order.At(batch * kRun * kStreams + i));
      blocks.insert(block);
      batch_blocks.insert(block);
    }
    EXPECT_GE(batch_blocks.size(), 7U);
  }
  EXPECT_LE(blocks.size(), 9U) << "16 batches need but the window's blocks";
}

// Version 1's outputs: a change here changes the order of every run in the world.
TEST(BlockOrder, outputs_of_version_1_are_frozen) {
  BlockOrder order(Share(BlockTable::Uniform(1000, 30)), {4, 2, 8}, 1);
  std::vector<uint64_t> got;
  for (const uint64_t i : {0, 1, 8, 9, 16, 500, 998, 999}) got.push_back(order.At(i));
  EXPECT_EQ(got, (std::vector<uint64_t>{678, 243, 488, 507, 728, 789, 866, 865}));
}

TEST(BlockOrder, a_trillion_samples_take_no_memory) {
  constexpr uint64_t kN = 1'000'000'000'000;
  BlockOrder order(Share(BlockTable::Uniform(kN, 1000)), {16, 64, 64}, 5);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t position = i * (kN / 1000) + i;
    EXPECT_EQ(order.PositionOf(order.At(position)), position);
  }
}

TEST(EpochOrder, depends_on_seed_and_epoch_but_never_on_their_sum) {
  const auto table = Share(BlockTable::Uniform(1000, 10));
  for (const Shuffle& shuffle : {Shuffle(GlobalShuffle{}), Shuffle(BlockShuffle{})}) {
    EpochOrder a({1000, 1, shuffle, table}, 1);
    EpochOrder b({1000, 2, shuffle, table}, 0);
    EpochOrder again({1000, 1, shuffle, table}, 1);
    int equal = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      equal += a.SampleAt(i) == b.SampleAt(i) ? 1 : 0;
      ASSERT_EQ(a.SampleAt(i), again.SampleAt(i));
      ASSERT_EQ(a.PositionOf(a.SampleAt(i)), i);
    }
    EXPECT_LT(equal, 12);
  }
}

}  // namespace
}  // namespace forebay::order
