// Pictures whose colours are known, as RGB: matrix and range, layouts, sizes, rotation and flip.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "media/media.h"
#include "testing/plain_video.h"

namespace forebay::media {
namespace {

using forebay::testing::FetchedText;
using forebay::testing::MakeVideo;
using forebay::testing::PlainVideo;

using Rgb = std::array<int, 3>;
constexpr Rgb kRed{220, 30, 40}, kGreen{20, 190, 60}, kBlue{40, 60, 210}, kWhite{230, 230, 230};

// 66x38 with red, green above blue, white; H.264 of the highest quality, by matrix and range.
PlainVideo Quadrants(const std::string& name, const std::string& pixel_format,
                     const std::string& matrix, const std::string& range) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("forebay_rgb_" + name + ".mp4")).string();
  const auto color = [](const char* hex) {
    return "color=0x" + std::string(hex) + ":size=33x19:rate=5,format=gbrp";
  };
  const std::string graph = "'" + color("dc1e28") + "[a];" + color("14be3c") + "[b];" +
                            color("283cd2") + "[c];" + color("e6e6e6") +
                            "[d];[a][b]hstack[e];[c][d]hstack[f];[e][f]vstack,"
                            "scale=out_color_matrix=" +
                            matrix + ":out_range=" + range +
                            ":flags=accurate_rnd+full_chroma_int,format=" + pixel_format + "'";
  const Status made = MakeVideo("-f lavfi -i color=size=16x16 -filter_complex " + graph +
                                    " -frames:v 3 -c:v libx264 -preset ultrafast -qp 1",
                                path);
  EXPECT_TRUE(made.ok()) << made.ToString();
  auto video = PlainVideo::Load(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(video.ok()) << video.status().ToString();
  return video.ok() ? *std::move(video) : PlainVideo();
}

struct Picture {
  int width = 0, height = 0;
  PixelLayout layout = PixelLayout::kHwc;
  std::vector<std::byte> bytes;
  Rgb At(int x, int y) const {
    Rgb rgb{};
    for (int k = 0; k < 3; ++k) {
      const int i =
          layout == PixelLayout::kHwc ? (y * width + x) * 3 + k : (k * height + y) * width + x;
      rgb[static_cast<size_t>(k)] = std::to_integer<int>(bytes[static_cast<size_t>(i)]);
    }
    return rgb;
  }
};

Picture Decode(const PlainVideo& video, OutputFormat format) {
  const DisplaySize natural = DisplaySizeOf(video.index.parameters);
  Picture picture{.width = format.width > 0 ? format.width : natural.width,
                  .height = format.height > 0 ? format.height : natural.height,
                  .layout = format.layout,
                  .bytes = {}};
  picture.bytes.resize(static_cast<size_t>(picture.width * picture.height) * 3);
  auto decoder = VideoDecoder::Make({});
  const auto runs = PlanDecode(video.index, {1});
  EXPECT_TRUE(decoder.ok() && runs.ok());
  const Status status =
      (*decoder)->DecodeRgb(video.index, *runs, FetchedText(video.bytes), format, picture.bytes);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return picture;
}

void ExpectNear(const Rgb& got, const Rgb& want, const std::string& what) {
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(got[k], want[k], 4) << what << ", channel " << k;
}

// The four quadrants' centres: left and right above, left and right below.
void ExpectQuadrants(const Picture& p, const std::array<Rgb, 4>& want, const std::string& what) {
  const int x[2] = {p.width / 4, p.width * 3 / 4}, y[2] = {p.height / 4, p.height * 3 / 4};
  for (size_t i = 0; i < 4; ++i) {
    ExpectNear(p.At(x[i % 2], y[i / 2]), want[i], what + ", quadrant " + std::to_string(i));
  }
}

constexpr std::array<Rgb, 4> kAsMade{kRed, kGreen, kBlue, kWhite};

TEST(Rgb, follows_the_tagged_matrix_and_range_and_takes_untagged_as_601_limited) {
  PlainVideo limited = Quadrants("limited", "yuv444p", "bt601", "tv");
  limited.index.parameters.color_space = 2;  // unspecified
  ExpectQuadrants(Decode(limited, {}), kAsMade, "untagged");
  PlainVideo full = Quadrants("full", "yuv420p", "bt709", "pc");
  full.index.parameters.color_space = 1;
  full.index.parameters.color_range = 2;
  ExpectQuadrants(Decode(full, {}), kAsMade, "BT.709 full");
}

TEST(Rgb, turns_and_flips_as_tagged_in_both_layouts) {
  PlainVideo video = Quadrants("turned", "yuv420p", "bt601", "tv");
  struct {
    int rotation;
    bool flip;
    std::array<Rgb, 4> want;
  } const rows[] = {
      {0, false, kAsMade},
      {90, false, {kBlue, kRed, kWhite, kGreen}},
      {180, false, {kWhite, kBlue, kGreen, kRed}},
      {270, false, {kGreen, kWhite, kRed, kBlue}},
      {0, true, {kGreen, kRed, kWhite, kBlue}},
      {90, true, {kRed, kBlue, kGreen, kWhite}},
  };
  for (const auto& row : rows) {
    video.index.parameters.rotation = row.rotation;
    video.index.parameters.flip = row.flip;
    const std::string what = std::to_string(row.rotation) + (row.flip ? " flipped" : "");
    const Picture packed = Decode(video, {});
    EXPECT_EQ(packed.width, row.rotation % 180 == 0 ? 66 : 38);
    ExpectQuadrants(packed, row.want, what);
    const Picture planes = Decode(video, {.layout = PixelLayout::kChw});
    ExpectQuadrants(planes, row.want, what + " planes");
    for (int y = 0; y < packed.height; ++y) {
      for (int x = 0; x < packed.width; ++x) ASSERT_EQ(packed.At(x, y), planes.At(x, y)) << what;
    }
    const Picture small = Decode(video, {.width = 20, .height = 12, .layout = PixelLayout::kChw});
    ExpectQuadrants(small, row.want, what + " resized");
  }
}

TEST(Rgb, reads_deep_and_rgb_formats) {
  ExpectQuadrants(Decode(Quadrants("deep", "yuv420p10le", "bt601", "tv"), {}), kAsMade, "10 bit");
  ExpectQuadrants(Decode(Quadrants("deep422", "yuv422p10le", "bt601", "tv"), {}), kAsMade, "4:2:2");
}

TEST(Rgb, refuses_an_output_of_another_size) {
  const PlainVideo video = Quadrants("refused", "yuv420p", "bt601", "tv");
  auto decoder = VideoDecoder::Make({});
  ASSERT_TRUE(decoder.ok());
  std::vector<std::byte> output(66 * 38 * 3 - 1);
  const auto runs = PlanDecode(video.index, {1});
  EXPECT_EQ((*decoder)->DecodeRgb(video.index, *runs, FetchedText(video.bytes), {}, output).code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::media
