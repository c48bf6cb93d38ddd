#include "store/part_size.h"

#include <gtest/gtest.h>

namespace forebay::store {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(PartSize, grows_only_when_there_would_be_too_many_parts) {
  EXPECT_EQ(*PartBytesFor(0, 16 * kMiB), 16 * kMiB);
  EXPECT_EQ(*PartBytesFor(160'000 * kMiB, 16 * kMiB), 16 * kMiB);
  EXPECT_EQ(*PartBytesFor(160'000 * kMiB + 1, 16 * kMiB), 17 * kMiB);
}

TEST(PartSize, any_object_up_to_the_largest_fits_into_the_parts_there_are) {
  for (uint64_t size = 1; size < kMostObjectBytes; size += 1 + size / 3 * 2) {
    for (const uint64_t wanted : {uint64_t{0}, 5 * kMiB, 16 * kMiB, kMostPartBytes * 2}) {
      const uint64_t part = *PartBytesFor(size, wanted);
      EXPECT_LE((size + part - 1) / part, kMostParts) << size;
      EXPECT_LE(part, kMostPartBytes) << size;
    }
  }
  EXPECT_EQ(*PartBytesFor(kMostObjectBytes, 16 * kMiB), kMostPartBytes);
  EXPECT_EQ(PartBytesFor(kMostObjectBytes + 1, 16 * kMiB).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::store
