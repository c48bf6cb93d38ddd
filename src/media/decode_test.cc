// Every frame of small files of many kinds, by number, in several orders, against a plain
// sequential decode of the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include "base/random.h"
#include "media/media.h"
#include "testing/plain_video.h"

namespace forebay::media {
namespace {

using forebay::testing::FetchedText;
using forebay::testing::MakeVideo;
using forebay::testing::PlainVideo;

// A folder of this run's own.
std::string Folder() {
  static const std::string folder = [] {
    const auto base = std::filesystem::temp_directory_path() / "forebay_decode_";
    for (;;) {
      const std::string name = base.string() + std::to_string(std::random_device()());
      if (std::filesystem::create_directory(name)) return name;
    }
  }();
  return folder;
}

class RemoveFolder : public ::testing::Environment {
 public:
  void TearDown() override { std::filesystem::remove_all(Folder()); }
};
[[maybe_unused]] const auto* const kRemoveFolder =
    ::testing::AddGlobalTestEnvironment(new RemoveFolder);

struct Kind {
  const char* name;
  const char* arguments;
  const char* extension = "mp4";
  int recovery = 0;  // of every sync point but the first
};

std::string SourceArguments(const char* size, int frames) {
  return "-f lavfi -i testsrc2=size=" + std::string(size) +
         ":rate=25,noise=alls=12:allf=t -frames:v " + std::to_string(frames) + " -sc_threshold 0 ";
}

PlainVideo MakeNew(const Kind& kind) {
  const std::string path = Folder() + "/" + kind.name + "." + kind.extension;
  const Status made = MakeVideo(SourceArguments("160x96", 60) + kind.arguments, path);
  EXPECT_TRUE(made.ok()) << made.ToString();
  auto video = PlainVideo::Load(path);
  EXPECT_TRUE(video.ok()) << video.status().ToString();
  if (!video.ok()) return {};
  for (size_t p = 1; p < video->index.packets.size(); ++p) {
    Packet& packet = video->index.packets[p];
    if ((packet.flags & Packet::kKey) != 0) packet.recovery = static_cast<uint16_t>(kind.recovery);
  }
  return *std::move(video);
}

// Made once per kind.
const PlainVideo& Make(const Kind& kind) {
  static std::map<std::string, PlainVideo> made;
  const auto [at, is_new] = made.try_emplace(kind.name);
  if (is_new) at->second = MakeNew(kind);
  return at->second;
}

void ExpectFrame(const PlainVideo& video, const NativeFrame& got, const std::string& what) {
  const auto& want = video.frames[got.frame];
  EXPECT_EQ(got.width, want.width);
  EXPECT_EQ(got.height, want.height);
  EXPECT_EQ(got.pixel_format, want.pixel_format);
  // No EXPECT_EQ: nobody wants to read a picture's bytes.
  EXPECT_TRUE(AsText(got.bytes) == want.native) << what << ": frame " << got.frame << " differs";
}

// Decodes `numbers` in one call from the planned ranges alone.
void ExpectExact(VideoDecoder& decoder, const PlainVideo& video, std::vector<uint32_t> numbers,
                 const std::string& what) {
  const auto runs = PlanDecode(video.index, numbers);
  ASSERT_TRUE(runs.ok()) << what << ": " << runs.status().ToString();
  const FetchedText bytes(video.bytes, RangesOf(video.index, *runs, 0));
  std::vector<uint32_t> came;
  const Status status = decoder.DecodeNative(video.index, *runs, bytes, [&](NativeFrame frame) {
    came.push_back(frame.frame);
    ExpectFrame(video, frame, what);
    return Status();
  });
  ASSERT_TRUE(status.ok()) << what << ": " << status.ToString();
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  EXPECT_EQ(came, numbers) << what;
}

std::vector<uint32_t> Shuffled(size_t count, uint64_t key) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Random random(key);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.NextBelow(i)]);
  return order;
}

class EveryKind : public ::testing::TestWithParam<Kind> {};

TEST_P(EveryKind, gives_each_frame_by_number_as_sequential_decoding_does) {
  const PlainVideo& video = Make(GetParam());
  ASSERT_EQ(video.frames.size(), 60u);
  auto decoder = VideoDecoder::Make({});
  ASSERT_TRUE(decoder.ok()) << decoder.status().ToString();
  const auto count = static_cast<uint32_t>(video.frames.size());
  for (uint32_t f = 0; f < count; ++f) ExpectExact(**decoder, video, {f}, "ascending");
  for (uint32_t f = count; f-- > 0;) ExpectExact(**decoder, video, {f}, "descending");
  const auto shuffled = Shuffled(count, 7);
  for (const uint32_t f : shuffled) ExpectExact(**decoder, video, {f}, "shuffled");
  for (size_t at = 0; at + 5 <= count; at += 5) {
    ExpectExact(**decoder, video, {shuffled.begin() + at, shuffled.begin() + at + 5},
                "five at once");
  }
  ExpectExact(**decoder, video, shuffled, "all at once");
}

TEST_P(EveryKind, gives_the_same_frames_from_a_fresh_decoder_and_with_every_packet_fed) {
  const PlainVideo& video = Make(GetParam());
  for (const uint32_t f : Shuffled(video.frames.size(), 11)) {
    if (f % 3 != 0) continue;
    auto decoder = VideoDecoder::Make({.open_decoders_max = 1, .drop_unreferenced = f % 2 == 0});
    ASSERT_TRUE(decoder.ok());
    ExpectExact(**decoder, video, {f}, "fresh");
  }
}

#define X264 "-c:v libx264 -preset veryfast -pix_fmt yuv420p "
#define X265 "-c:v libx265 -preset ultrafast -pix_fmt yuv420p "

INSTANTIATE_TEST_SUITE_P(
    Decode, EveryKind,
    ::testing::Values(
        Kind{"h264_b_frames", X264 "-x264-params keyint=15:bframes=3:b-pyramid=normal"},
        Kind{"h264_open_gop",
             X264 "-x264-params open-gop=1:keyint=12:min-keyint=12:bframes=3:b-pyramid=normal"},
        Kind{"h264_open_gop_references", X264
             "-x264-params open-gop=1:keyint=12:min-keyint=12:bframes=3:b-pyramid=strict:ref=4"},
        Kind{"h264_intra_refresh", X264 "-x264-params intra-refresh=1:keyint=10:bframes=0", "mp4",
             14},
        Kind{"h264_baseline", X264 "-profile:v baseline -g 20"},
        Kind{"h264_ten_bit_444", "-c:v libx264 -preset veryfast -pix_fmt yuv444p10le -g 20"},
        Kind{"h264_interlaced", X264 "-flags +ilme+ildct -x264-params tff=1:keyint=15"},
        Kind{"h264_matroska", X264 "-g 15", "mkv"},
        Kind{"hevc_cra_rasl", X265
             "-tag:v hvc1 -x265-params log-level=none:keyint=12:min-keyint=12:open-gop=1:bframes=4:"
             "b-pyramid=1"},
        Kind{"hevc_radl",
             X265 "-x265-params log-level=none:keyint=12:min-keyint=12:open-gop=0:radl=3:"
                  "bframes=4"},
        Kind{"hevc_temporal_layers", X265 "-x265-params log-level=none:keyint=20:min-keyint=20:"
                                          "open-gop=0:temporal-layers=3:bframes=4:b-adapt=0"},
        Kind{"hevc_ten_bit",
             "-c:v libx265 -preset ultrafast -pix_fmt yuv420p10le -x265-params "
             "log-level=none:keyint=15"},
        Kind{"hevc_sets_in_band",
             X265 "-tag:v hev1 -x265-params log-level=none:keyint=15:repeat-headers=1"},
        Kind{"mpeg4_b_frames", "-c:v mpeg4 -bf 2 -g 12 -q:v 4"},
        Kind{"mpeg2_b_frames", "-c:v mpeg2video -bf 2 -g 12 -q:v 4", "mkv"},
        Kind{"vp8_alternate_references",
             "-c:v libvpx -auto-alt-ref 1 -lag-in-frames 12 -deadline realtime -cpu-used 8 -g 20",
             "webm"},
        Kind{"vp9", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20", "webm"},
        Kind{"av1", "-c:v libsvtav1 -preset 12 -g 20 -svtav1-params lookahead=20"},
        Kind{"mjpeg", "-c:v mjpeg -pix_fmt yuvj422p -q:v 4", "mov"},
        Kind{"prores", "-c:v prores_ks -profile:v 0", "mov"}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace forebay::media
