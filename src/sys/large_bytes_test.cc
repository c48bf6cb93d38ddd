#include "sys/large_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace forebay::sys {
namespace {

TEST(LargeBytes, holds_what_was_asked_for_however_large_it_is) {
  for (const size_t size : {size_t{1}, size_t{4096}, (size_t{2} << 20) - 1, size_t{5} << 20}) {
    LargeBytes bytes(size);
    ASSERT_EQ(bytes.size(), size);
    std::fill_n(bytes.data(), size, std::byte{7});
    LargeBytes moved(std::move(bytes));
    EXPECT_EQ(moved.data()[size - 1], std::byte{7});
    LargeBytes other(3);
    other = std::move(moved);
    EXPECT_EQ(other.size(), size);
    EXPECT_EQ(std::count(other.data(), other.data() + size, std::byte{7}),
              static_cast<std::ptrdiff_t>(size));
  }
  EXPECT_EQ(LargeBytes().size(), 0U);
  EXPECT_EQ(LargeBytes(0).capacity(), 0U);
}

TEST(LargeBytes, keeps_its_memory_for_less_and_gives_it_back_for_much_less) {
  LargeBytes bytes(size_t{4} << 20);
  const std::byte* const at = bytes.data();
  bytes.Reset(size_t{3} << 20);
  EXPECT_EQ(bytes.data(), at);
  EXPECT_EQ(bytes.size(), size_t{3} << 20);
  EXPECT_EQ(bytes.capacity(), size_t{4} << 20);
  bytes.Reset(size_t{1} << 20);
  EXPECT_EQ(bytes.capacity(), size_t{1} << 20);
  bytes.Reset(size_t{8} << 20);
  EXPECT_EQ(bytes.capacity(), size_t{8} << 20);
  std::fill_n(bytes.data(), bytes.size(), std::byte{1});
  bytes.Reset(0);
  EXPECT_EQ(bytes.capacity(), 0U);
}

}  // namespace
}  // namespace forebay::sys
