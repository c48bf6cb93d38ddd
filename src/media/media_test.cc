#include "media/media.h"

#include <gtest/gtest.h>

namespace forebay::media {
namespace {

TEST(Media, the_library_with_ffmpeg_is_found_and_of_this_build) {
  const auto version = MediaVersion();
  ASSERT_TRUE(version.ok()) << version.status().ToString();
  EXPECT_NE(version->find("libavcodec"), std::string::npos) << *version;
}

}  // namespace
}  // namespace forebay::media
