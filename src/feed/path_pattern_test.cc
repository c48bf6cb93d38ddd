#include "feed/path_pattern.h"

#include <gtest/gtest.h>

namespace forebay::feed {
namespace {

TEST(PathPattern, names_the_parts_of_a_key) {
  const auto pattern = PathPattern::Parse("{scene}/{camera}.mp4");
  ASSERT_TRUE(pattern.ok());
  const auto values = pattern->Match("drive-7/front.left.mp4");
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(values->at("scene"), "drive-7");
  EXPECT_EQ(values->at("camera"), "front.left");
  EXPECT_FALSE(pattern->Match("a/b/front.mp4").has_value());
  EXPECT_FALSE(pattern->Match("drive-7/.mp4").has_value());
}

TEST(PathPattern, names_take_as_much_as_they_can) {
  const auto pattern = PathPattern::Parse("{a}-{b}");
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern->Match("x-y-z")->at("a"), "x-y");
  EXPECT_EQ(pattern->Match("x-y-z")->at("b"), "z");
}

TEST(PathPattern, refuses_what_cannot_be_told_apart) {
  for (const char* bad : {"{a}{b}", "{a}/{a}", "{}", "{a", "{a{b}}"}) {
    EXPECT_EQ(PathPattern::Parse(bad).code(), Code::kInvalidArgument) << bad;
  }
}

// There are 10^19 ways to cut this key, none of which fits.
TEST(PathPattern, a_key_of_separators_is_refused_at_once) {
  const auto pattern = PathPattern::Parse("{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}x");
  ASSERT_TRUE(pattern.ok());
  EXPECT_FALSE(pattern->Match(std::string(1000, '-')).has_value());
}

}  // namespace
}  // namespace forebay::feed
