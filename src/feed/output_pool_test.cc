#include "feed/output_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace forebay::feed {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(OutputPool, idle_blocks_are_used_again_and_can_be_given_back) {
  const auto pool = OutputPool::Make(100 * kMiB);
  const std::byte* first = nullptr;
  {
    const auto a = pool->Take(kMiB), b = pool->Take(2 * kMiB), c = pool->Take(4 * kMiB);
    first = c.get();
    EXPECT_EQ(pool->idle_bytes(), 0u);
  }
  EXPECT_EQ(pool->idle_bytes(), 7 * kMiB);
  EXPECT_EQ(pool->mapped_bytes(), 7 * kMiB);
  auto c = pool->Take(4 * kMiB);
  EXPECT_EQ(c.get(), first);
  EXPECT_EQ(pool->idle_bytes(), 3 * kMiB);
  EXPECT_EQ(pool->Trim(0), 0u);
  // Blocks came back as c, b, a.
  EXPECT_EQ(pool->Trim(1), 2 * kMiB);
  EXPECT_EQ(pool->Trim(100 * kMiB), kMiB);
  EXPECT_EQ(pool->mapped_bytes(), 4 * kMiB);
  c.reset();
  EXPECT_EQ(pool->idle_bytes(), 4 * kMiB);
}

TEST(OutputPool, who_holds_a_block_holds_no_others) {
  auto pool = OutputPool::Make(100 * kMiB);
  const auto kept = pool->Take(kMiB);
  const auto later = pool->Take(kMiB);
  (void)pool->Take(8 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 8 * kMiB);
  pool->KeepNone();
  EXPECT_EQ(pool->mapped_bytes(), 2 * kMiB);
  (void)pool->Take(8 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 0u);
  pool.reset();
  kept.get()[kMiB - 1] = std::byte{1};
}

TEST(OutputPool, idle_memory_of_both_kinds_stays_within_one_bound) {
  const auto outputs = OutputPool::Make(100 * kMiB);
  const auto slabs = SlabPool::Make();
  const auto block = outputs->Take(kMiB);
  const SlabBuffer slab = slabs->Take(kMiB);
  for (std::vector<std::shared_ptr<std::byte>> taken; taken.size() < 4;) {
    taken.push_back(outputs->Take(2 * kMiB));
  }
  (void)slabs->Take(16 * kMiB);
  const uint64_t idle = outputs->idle_bytes() + slabs->idle_bytes();
  ASSERT_EQ(idle, 25 * kMiB);  // a region of slabs has 2 MiB
  TrimIdle(*outputs, *slabs, idle);
  EXPECT_EQ(outputs->idle_bytes() + slabs->idle_bytes(), idle);
  TrimIdle(*outputs, *slabs, 7 * kMiB);
  EXPECT_LE(outputs->idle_bytes() + slabs->idle_bytes(), 7 * kMiB);
  EXPECT_GE(outputs->idle_bytes() + slabs->idle_bytes(), 5 * kMiB);
  TrimIdle(*outputs, *slabs, 0);
  EXPECT_EQ(outputs->idle_bytes() + slabs->idle_bytes(), 0u);
  EXPECT_EQ(outputs->mapped_bytes(), kMiB);
  EXPECT_EQ(slabs->slabs_mapped(), kMiB / kSlabBytes);
}

// Epochs that come from memory read nothing: slabs lie idle, and blocks come and go.
TEST(TrimIdle, what_more_of_lies_idle_goes_first) {
  const auto outputs = OutputPool::Make(100 * kMiB);
  const auto slabs = SlabPool::Make();
  (void)outputs->Take(2 * kMiB);
  (void)slabs->Take(16 * kMiB);
  TrimIdle(*outputs, *slabs, 8 * kMiB);
  EXPECT_EQ(outputs->idle_bytes(), 2 * kMiB);
  EXPECT_LE(slabs->idle_bytes(), 6 * kMiB);
  (void)outputs->Take(16 * kMiB);
  const uint64_t raw = slabs->idle_bytes();
  TrimIdle(*outputs, *slabs, 8 * kMiB);
  EXPECT_EQ(slabs->idle_bytes(), raw);
  EXPECT_LE(outputs->idle_bytes() + raw, 8 * kMiB);
}

}  // namespace
}  // namespace forebay::feed
