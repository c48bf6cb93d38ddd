#include "media/ffmpeg/picture_hash.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <cstring>

namespace forebay::media::ffmpeg {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

// Four sums side by side, so that the multiplications overlap.
uint64_t MixBytes(uint64_t hash, const uint8_t* bytes, size_t n) {
  uint64_t lanes[4] = {hash, hash + 1, hash + 2, hash + 3};
  for (; n >= 32; n -= 32, bytes += 32) {
    for (int i = 0; i < 4; ++i) {
      uint64_t value;
      std::memcpy(&value, bytes + 8 * i, 8);
      lanes[i] = Mix(lanes[i], value);
    }
  }
  for (; n > 0; --n) lanes[0] = Mix(lanes[0], *bytes++);
  return Mix(Mix(Mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

}  // namespace

uint64_t HashOfPicture(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
  uint64_t hash =
      Mix(Mix(Mix(1, static_cast<uint64_t>(frame.format)), static_cast<uint64_t>(frame.width)),
          static_cast<uint64_t>(frame.height));
  const int planes = av_pix_fmt_count_planes(format);
  for (int plane = 0; plane < planes && descriptor != nullptr; ++plane) {
    const bool chroma = plane == 1 || plane == 2;
    const int height =
        chroma ? AV_CEIL_RSHIFT(frame.height, descriptor->log2_chroma_h) : frame.height;
    const int bytes = av_image_get_linesize(format, frame.width, plane);
    if (bytes <= 0 || frame.data[plane] == nullptr) continue;
    for (int y = 0; y < height; ++y) {
      hash = MixBytes(hash, frame.data[plane] + static_cast<ptrdiff_t>(y) * frame.linesize[plane],
                      static_cast<size_t>(bytes));
    }
  }
  if ((descriptor->flags & AV_PIX_FMT_FLAG_PAL) != 0 && frame.data[1] != nullptr) {
    hash = MixBytes(hash, frame.data[1], AVPALETTE_SIZE);
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace forebay::media::ffmpeg
