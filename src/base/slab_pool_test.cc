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
