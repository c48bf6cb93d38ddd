// Damaged and missing bytes: an error that says where, never a crash, and no trace in what is
// decoded next.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/random.h"
#include "media/media.h"
#include "testing/plain_video.h"

namespace forebay::media {
namespace {

using forebay::testing::FetchedText;
using forebay::testing::MakeVideo;
using forebay::testing::PlainVideo;

PlainVideo Make(const std::string& name, const std::string& arguments) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("forebay_damage_" + std::to_string(std::random_device()()) + name))
                               .string();
  const Status made = MakeVideo(
      "-f lavfi -i testsrc2=size=160x96:rate=25,noise=alls=12:allf=t -frames:v 40 " + arguments,
      path);
  EXPECT_TRUE(made.ok()) << made.ToString();
  auto video = PlainVideo::Load(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(video.ok()) << video.status().ToString();
  return video.ok() ? *std::move(video) : PlainVideo();
}

struct Outcome {
  Status status;
  bool exact = false;  // the frame came and is the undamaged file's
};

Outcome DecodeOne(VideoDecoder& decoder, const PlainVideo& video, const std::string& bytes,
                  uint32_t number) {
  Outcome outcome;
  const auto runs = PlanDecode(video.index, {number});
  outcome.status = runs.status();
  if (!runs.ok()) return outcome;
  outcome.status =
      decoder.DecodeNative(video.index, *runs, FetchedText(bytes), [&](NativeFrame frame) {
        outcome.exact = AsText(frame.bytes) == video.frames[number].native;
        return Status();
      });
  return outcome;
}

struct Kind {
  const char* name;
  const char* arguments;
  // The codec's syntax shows where data ends early; an arithmetic coder reads zeros as a picture.
  bool shows_lost_data = false;
};

class Damage : public ::testing::TestWithParam<Kind> {};

TEST_P(Damage, of_any_bytes_gives_an_error_or_a_picture_and_leaves_no_trace) {
  const PlainVideo video = Make(GetParam().name, GetParam().arguments);
  ASSERT_EQ(video.frames.size(), 40u);
  auto decoder = VideoDecoder::Make({});
  ASSERT_TRUE(decoder.ok());
  Random random(HashName(GetParam().name));
  for (int round = 0; round < 60; ++round) {
    const auto number = static_cast<uint32_t>(random.NextBelow(40));
    std::string bytes = video.bytes;
    for (uint64_t flips = 1 + random.NextBelow(30); flips > 0; --flips) {
      const Packet& packet = video.index.packets[random.NextBelow(40)];
      bytes[packet.offset + random.NextBelow(packet.size)] = static_cast<char>(random.Next());
    }
    const Outcome damaged = DecodeOne(**decoder, video, bytes, number);
    EXPECT_TRUE(damaged.status.ok() || damaged.status.code() == Code::kDataLoss)
        << damaged.status.ToString();
    const Outcome sound = DecodeOne(**decoder, video, video.bytes, number);
    ASSERT_TRUE(sound.status.ok()) << sound.status.ToString();
    ASSERT_TRUE(sound.exact) << "frame " << number << " after damage in round " << round;
  }
}

TEST_P(Damage, of_a_whole_packet_is_reported_with_frame_packet_and_offset) {
  const PlainVideo video = Make(GetParam().name, GetParam().arguments);
  ASSERT_EQ(video.frames.size(), 40u);
  auto decoder = VideoDecoder::Make({});
  ASSERT_TRUE(decoder.ok());
  for (uint32_t number = 0; number < 40; number += 3) {
    const uint32_t p = video.index.frames[number].packet;
    const Packet& packet = video.index.packets[p];
    std::string bytes = video.bytes;
    const uint64_t kept = GetParam().shows_lost_data ? packet.size / 8 : 0;
    for (uint64_t i = kept; i < packet.size; ++i) bytes[packet.offset + i] = 0;
    const Outcome damaged = DecodeOne(**decoder, video, bytes, number);
    ASSERT_FALSE(damaged.status.ok())
        << "frame " << number << (damaged.exact ? " exact" : " wrong");
    const std::string text = damaged.status.ToString();
    EXPECT_EQ(damaged.status.code(), Code::kDataLoss) << text;
    EXPECT_NE(text.find("frame " + std::to_string(number)), std::string::npos) << text;
    EXPECT_NE(text.find("packet " + std::to_string(p)), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(packet.offset)), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Decode, Damage,
    ::testing::Values(Kind{"h264.mp4", "-c:v libx264 -preset veryfast -pix_fmt yuv420p -g 15",
                           true},
                      Kind{"hevc.mp4",
                           "-c:v libx265 -preset ultrafast -pix_fmt yuv420p -x265-params "
                           "log-level=none:keyint=15"},
                      Kind{"vp9.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 15"},
                      Kind{"av1.mp4", "-c:v libsvtav1 -preset 12 -g 15"},
                      Kind{"mpeg4.mp4", "-c:v mpeg4 -bf 2 -g 15 -q:v 3", true},
                      Kind{"mpeg2.mkv", "-c:v mpeg2video -bf 2 -g 15 -q:v 3", true},
                      Kind{"mjpeg.mov", "-c:v mjpeg -pix_fmt yuvj420p -q:v 3"},
                      Kind{"prores.mov", "-c:v prores_ks -profile:v 0", true}),
    [](const auto& kind) {
      const std::string name = kind.param.name;
      return name.substr(0, name.find('.'));
    });

TEST(Decode, tells_of_bytes_that_were_not_fetched) {
  const PlainVideo video = Make("h264.mp4", "-c:v libx264 -preset veryfast -pix_fmt yuv420p -g 15");
  auto decoder = VideoDecoder::Make({});
  ASSERT_TRUE(decoder.ok());
  const auto runs = PlanDecode(video.index, {5});
  ASSERT_TRUE(runs.ok());
  auto ranges = RangesOf(video.index, *runs, 0);
  ranges.pop_back();
  const Status status = (*decoder)->DecodeNative(
      video.index, *runs, FetchedText(video.bytes, ranges), [](NativeFrame) { return Status(); });
  EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
  EXPECT_NE(status.ToString().find("frame 5"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace forebay::media
