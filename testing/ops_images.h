// Pictures for tests of ops, and files of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forebay::testing {

// HWC bytes with edges and slopes, never twice the same for another seed.
struct Picture {
  int width = 0, height = 0, channels = 3;
  std::vector<uint8_t> pixels;
};
Picture MakePicture(int width, int height, int channels, uint64_t seed);

struct JpegOptions {
  int quality = 90;
  bool progressive = false;
  int chroma_x = 2, chroma_y = 2;  // 2, 2: 4:2:0
  bool arithmetic = false;
  int restart_rows = 0;  // a restart marker after so many rows of blocks
};
std::string EncodeJpeg(const Picture& picture, const JpegOptions& options = {});
std::string EncodePng(const Picture& picture);
std::string EncodeWebp(const Picture& picture);  // of 3 or 4 channels, lossless

}  // namespace forebay::testing
