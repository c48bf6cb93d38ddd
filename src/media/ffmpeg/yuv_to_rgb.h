// 8-bit planar YUV rows to RGB in one pass: integer arithmetic of one definition, the same result
// with and without vector instructions. Chroma is taken as it is stored, not interpolated.
#pragma once

#include <cstdint>

namespace forebay::media::ffmpeg {

// One row of the picture; chroma sample x >> chroma_shift belongs to pixel x.
struct YuvRow {
  const uint8_t* y = nullptr;
  const uint8_t* u = nullptr;
  const uint8_t* v = nullptr;
  int chroma_shift = 0;  // 0 or 1
};

// Fixed point, 13 bits: red = y * (Y - offset) + red_v * (V - 128), and so on.
struct YuvCoefficients {
  int16_t offset = 0, y = 0, red_v = 0, green_u = 0, green_v = 0, blue_u = 0;
};

// kr and kb are the matrix's weights of red and blue in luma (BT.601: 0.299, 0.114).
YuvCoefficients MakeYuvCoefficients(double kr, double kb, bool full_range);

// Where a row goes: r, g and b are `step` bytes apart from pixel to pixel; step 3 with g = r + 1,
// b = r + 2, or step 1 with planes.
struct RgbRow {
  uint8_t* r = nullptr;
  uint8_t* g = nullptr;
  uint8_t* b = nullptr;
  int step = 3;
};

void YuvToRgb(const YuvRow& from, const YuvCoefficients& c, int width, const RgbRow& to);
// The definition itself, pixel by pixel.
void YuvToRgbPlain(const YuvRow& from, const YuvCoefficients& c, int begin, int end,
                   const RgbRow& to);

}  // namespace forebay::media::ffmpeg
