// class Video and InspectJson over a file on disk.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "forebay/video.h"
#include "testing/plain_video.h"

namespace forebay {
namespace {

using forebay::testing::MakeVideo;
using forebay::testing::PlainVideo;

class VideoApi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = (std::filesystem::temp_directory_path() /
             ("forebay_video_api_" + std::to_string(std::random_device()()) + ".mp4"))
                .string();
    ASSERT_TRUE(
        MakeVideo("-f lavfi -i testsrc2=size=160x96:rate=25,noise=alls=12:allf=t -f lavfi -i "
                  "sine -frames:v 60 -shortest -c:v libx264 -preset veryfast -pix_fmt yuv420p "
                  "-g 15 -c:a aac",
                  path_)
            .ok());
    auto plain = PlainVideo::Load(path_);
    ASSERT_TRUE(plain.ok()) << plain.status().ToString();
    plain_ = new PlainVideo(*std::move(plain));
  }
  static void TearDownTestSuite() {
    std::filesystem::remove(path_);
    delete plain_;
    plain_ = nullptr;
  }
  static std::unique_ptr<Video> Open(const VideoOptions& options = {}) {
    auto video = Video::Open(path_, {}, options);
    EXPECT_TRUE(video.ok()) << video.status().ToString();
    return video.ok() ? *std::move(video) : nullptr;
  }

  static inline std::string path_;
  static inline PlainVideo* plain_ = nullptr;
};

TEST_F(VideoApi, gives_native_pictures_in_ascending_order_equal_to_a_plain_decode) {
  const auto video = Open();
  ASSERT_NE(video, nullptr);
  ASSERT_EQ(video->frame_count(), plain_->frames.size());
  const std::vector<uint32_t> numbers{59, 3, 3, 17};
  std::vector<uint32_t> came;
  const Status status = video->NativeFrames(numbers, [&](const NativePicture& picture) {
    came.push_back(picture.frame);
    const auto& want = plain_->frames[picture.frame];
    EXPECT_EQ(picture.pts, plain_->index.frames[picture.frame].pts);
    EXPECT_TRUE(AsText(picture.bytes) == want.native) << picture.frame;
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(came, (std::vector<uint32_t>{3, 17, 59}));
}

TEST_F(VideoApi, puts_each_picture_where_its_number_stands) {
  const auto video = Open({.width = 40, .height = 24});
  ASSERT_NE(video, nullptr);
  constexpr size_t kBytes = 40 * 24 * 3;
  const std::vector<uint32_t> numbers{40, 2, 40, 41};
  std::vector<std::byte> out(numbers.size() * kBytes);
  const Status status = video->Frames(numbers, out);
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::vector<std::byte> alone(kBytes);
    ASSERT_TRUE(video->Frames(std::span(&numbers[i], 1), alone).ok());
    EXPECT_EQ(std::memcmp(alone.data(), out.data() + i * kBytes, kBytes), 0) << i;
  }
  EXPECT_NE(std::memcmp(out.data(), out.data() + kBytes, kBytes), 0);
}

TEST_F(VideoApi, finds_the_frame_shown_at_a_time) {
  const auto video = Open();
  ASSERT_NE(video, nullptr);
  EXPECT_EQ(*video->FrameAt(0.0), 0u);
  EXPECT_EQ(*video->FrameAt(0.0399), 0u);
  EXPECT_EQ(*video->FrameAt(0.0401), 1u);
  EXPECT_EQ(*video->FrameAt(1e6), 59u);
  EXPECT_EQ(video->FrameAt(-0.1).code(), Code::kInvalidArgument);
  EXPECT_EQ(video->FrameAt(std::nan("")).code(), Code::kInvalidArgument);
}

TEST_F(VideoApi, says_what_is_wrong_with_a_request) {
  const auto video = Open();
  ASSERT_NE(video, nullptr);
  std::vector<std::byte> out(160 * 96 * 3);
  const uint32_t outside = 60;
  EXPECT_EQ(video->Frames(std::span(&outside, 1), out).code(), Code::kInvalidArgument);
  EXPECT_EQ(Video::Open(path_, {}, {.stream = 1}).code(), Code::kNotFound);
  EXPECT_EQ(Video::Open(path_, {}, {.verify = "perhaps"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Video::Open(path_ + "x", {}, {}).code(), Code::kNotFound);
}

TEST_F(VideoApi, stops_where_the_visitor_says_with_its_status) {
  const auto video = Open();
  ASSERT_NE(video, nullptr);
  const std::vector<uint32_t> numbers{1, 2, 3};
  int visits = 0;
  const Status status = video->NativeFrames(numbers, [&](const NativePicture&) {
    ++visits;
    return Status(Code::kCancelled, "enough");
  });
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(visits, 1);
}

TEST_F(VideoApi, inspects_a_video) {
  const auto json = InspectJson(path_, {});
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  for (const char* part :
       {"\"kind\":\"video\"", "\"frames\":60", "\"sync_points\":4", "\"codec\":\"h264\""}) {
    EXPECT_NE(json->find(part), std::string::npos) << part << " in " << *json;
  }
}

}  // namespace
}  // namespace forebay
