#include "base/slab_pool.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(SlabPool, slabs_are_reused_and_counted) {
  auto pool = SlabPool::Make();
  {
    const SlabBuffer a = pool->Take(kSlabBytes + 1);
    EXPECT_EQ(a.slab_count(), 2u);
    EXPECT_EQ(pool->slabs_in_use(), 2u);
  }
  EXPECT_EQ(pool->slabs_in_use(), 0u);
  const size_t mapped = pool->slabs_mapped();
  for (int i = 0; i < 100; ++i) (void)pool->Take(3 * kSlabBytes);
  EXPECT_EQ(pool->slabs_mapped(), mapped);
}

TEST(SlabPool, what_is_free_can_be_given_back) {
  constexpr size_t kRegion = 32;  // slabs
  auto pool = SlabPool::Make();
  SlabBuffer kept;
  {
    const SlabBuffer first = pool->Take(kRegion * kSlabBytes);
    kept = pool->Take(kSlabBytes);
    kept.CopyIn(0, AsBytes("kept"));
    const SlabBuffer third = pool->Take(kRegion * kSlabBytes);
    EXPECT_EQ(pool->idle_bytes(), (3 * kRegion - 2 * kRegion - 1) * kSlabBytes);
  }
  EXPECT_EQ(pool->idle_bytes(), (3 * kRegion - 1) * kSlabBytes);
  EXPECT_EQ(pool->Trim(0), 0u);
  // Whole regions first, as many as it takes.
  EXPECT_EQ(pool->Trim(kSlabBytes), kRegion * kSlabBytes);
  EXPECT_EQ(pool->Trim(kSlabBytes + kRegion * kSlabBytes), (kRegion + 1) * kSlabBytes);
  EXPECT_EQ(pool->slabs_mapped(), kRegion - 1);
  EXPECT_EQ(pool->slabs_in_use(), 1u);
  EXPECT_EQ(pool->Trim(~uint64_t{0}), (kRegion - 2) * kSlabBytes);
  EXPECT_EQ(pool->idle_bytes(), 0u);
  EXPECT_EQ(pool->slabs_mapped(), 1u);
  std::vector<std::byte> scratch;
  EXPECT_EQ(AsText(kept.Contiguous(0, 4, scratch)), "kept");
  // Memory that was given back is taken again before there is more of it.
  SlabBuffer again = pool->Take((kRegion - 1) * kSlabBytes);
  EXPECT_EQ(pool->slabs_mapped(), kRegion);
  again.CopyIn(0, AsBytes("new"));
  EXPECT_EQ(AsText(kept.Contiguous(0, 4, scratch)), "kept");
  again = SlabBuffer();
  kept = SlabBuffer();
  EXPECT_EQ(pool->Trim(~uint64_t{0}), kRegion * kSlabBytes);
  EXPECT_EQ(pool->slabs_mapped(), 0u);
}

TEST(SlabPool, a_buffer_may_outlive_the_pool_handle) {
  auto pool = SlabPool::Make();
  SlabBuffer buffer = pool->Take(10);
  pool.reset();
  buffer.CopyIn(0, AsBytes("0123456789"));
  std::vector<std::byte> scratch;
  EXPECT_EQ(AsText(buffer.Contiguous(2, 3, scratch)), "234");
}

TEST(SlabBuffer, what_straddles_two_slabs_is_copied) {
  auto pool = SlabPool::Make();
  SlabBuffer buffer = pool->Take(2 * kSlabBytes);
  buffer.CopyIn(kSlabBytes - 2, AsBytes("abcd"));
  std::vector<std::byte> scratch;
  EXPECT_EQ(AsText(buffer.Contiguous(kSlabBytes - 2, 4, scratch)), "abcd");
  EXPECT_EQ(scratch.size(), 4u);
  EXPECT_EQ(buffer.Pieces(kSlabBytes - 2, 4).size(), 2u);
  SlabBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.size(), 2 * kSlabBytes);
}

}  // namespace
}  // namespace forebay
