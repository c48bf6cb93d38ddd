#include "media/ffmpeg/yuv_to_rgb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace forebay::media::ffmpeg {
namespace {

struct Row {
  std::vector<uint8_t> y, u, v;
};

Row RandomRow(int width, int shift, Random& random) {
  const auto fill = [&random](int count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (auto& b : bytes) b = static_cast<uint8_t>(random.Next());
    return bytes;
  };
  const int chroma = (width + (1 << shift) - 1) >> shift;
  return {fill(width), fill(chroma), fill(chroma)};
}

TEST(YuvToRgb, gives_the_same_with_vectors_as_pixel_by_pixel_and_stays_in_its_row) {
  Random random(3);
  const YuvCoefficients c = MakeYuvCoefficients(0.2126, 0.0722, false);
  for (int width = 1; width < 70; ++width) {
    for (const int shift : {0, 1}) {
      for (const int step : {1, 3}) {
        const Row row = RandomRow(width, shift, random);
        const YuvRow from{row.y.data(), row.u.data(), row.v.data(), shift};
        const size_t bytes = 3 * static_cast<size_t>(width);
        std::vector<uint8_t> fast(bytes + 64, 0xa5), plain(bytes + 64, 0xa5);
        const auto to = [&](std::vector<uint8_t>& out) {
          uint8_t* p = out.data();
          return step == 3 ? RgbRow{p, p + 1, p + 2, 3} : RgbRow{p, p + width, p + 2 * width, 1};
        };
        YuvToRgb(from, c, width, to(fast));
        YuvToRgbPlain(from, c, 0, width, to(plain));
        ASSERT_EQ(fast, plain) << "width " << width << " shift " << shift << " step " << step;
      }
    }
  }
}

TEST(YuvToRgb, is_within_one_of_the_matrix_in_real_numbers) {
  for (const bool full : {false, true}) {
    const double kr = 0.299, kb = 0.114, kg = 1 - kr - kb;
    const YuvCoefficients c = MakeYuvCoefficients(kr, kb, full);
    for (int i = 0; i < 256 * 256; i += 7) {
      const uint8_t y = static_cast<uint8_t>(i), u = static_cast<uint8_t>(i >> 8);
      const uint8_t v = static_cast<uint8_t>(i * 31 >> 3);
      uint8_t got[3];
      YuvToRgbPlain({&y, &u, &v, 0}, c, 0, 1, {got, got + 1, got + 2, 3});
      const double luma = full ? y / 255.0 : (y - 16) / 219.0;
      const double pb = (u - 128) / (full ? 255.0 : 224.0), pr = (v - 128) / (full ? 255.0 : 224.0);
      const double r = luma + 2 * (1 - kr) * pr, b = luma + 2 * (1 - kb) * pb;
      const double g = (luma - kr * r - kb * b) / kg;
      const double want[3] = {r, g, b};
      for (int k = 0; k < 3; ++k) {
        EXPECT_NEAR(got[k], std::clamp(want[k] * 255, 0.0, 255.0), 1.0) << i << " channel " << k;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::media::ffmpeg
