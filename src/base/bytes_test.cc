#include "base/bytes.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(ParseSize, reads_decimal_and_binary_units) {
  EXPECT_EQ(*ParseSize("0"), 0u);
  EXPECT_EQ(*ParseSize("1048576"), 1048576u);
  EXPECT_EQ(*ParseSize("64KiB"), 65536u);
  EXPECT_EQ(*ParseSize("64 kib"), 65536u);
  EXPECT_EQ(*ParseSize("500MB"), 500000000u);
  EXPECT_EQ(*ParseSize("1.5GiB"), 1610612736u);
  EXPECT_EQ(*ParseSize("1.1KiB"), 1126u);
}

TEST(ParseSize, refuses_what_is_no_size) {
  for (const char* bad : {"", "x", "-1", "1 XB", "1.5", "1e9", "99999999TiB", "nan", "1KiBx"}) {
    EXPECT_EQ(ParseSize(bad).code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace forebay
