// Decoded frames -> bytes: native planes, or upright 8-bit RGB.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/ffmpeg/av.h"
#include "media/media.h"

namespace forebay::media::ffmpeg {

// The frame's planes packed without padding, as FFmpeg's rawvideo encoder writes them.
Result<NativeFrame> PackNative(const AVFrame& frame, uint32_t number);

// Turns frames into RGB: matrix and range as the frame or else the stream tells, BT.601 limited
// where nobody does; scaled, rotated and flipped upright. The same picture gives the same bytes on
// every machine. Keeps its tables and scratch memory from frame to frame.
class RgbConverter {
 public:
  // Bytes of one picture.
  static uint64_t FrameBytes(const StreamParameters& parameters, const OutputFormat& format);
  // kInvalidArgument: the frame's size differs from the stream's and no output size was asked for;
  // kUnimplemented: a pixel format or colour matrix without a way to RGB.
  Status Convert(const AVFrame& frame, const StreamParameters& parameters,
                 const OutputFormat& format, MutableBytes output);

 private:
  // What a scaling context was made for.
  struct Shape {
    int32_t width = 0, height = 0, pixel_format = 0, full_range = 0, matrix = 0;
    int32_t to_width = 0, to_height = 0;
    bool operator==(const Shape&) const = default;
  };
  struct Scaler {
    Shape shape;
    AvPtr<SwsContext> context;
  };
  // 8-bit planar YUV at its own size.
  void ConvertPlanar(const AVFrame& frame, const Shape& shape, const StreamParameters& parameters,
                     const OutputFormat& format, MutableBytes output);
  // Everything else, through swscale.
  Status ConvertScaled(const AVFrame& frame, const Shape& shape, const StreamParameters& parameters,
                       const OutputFormat& format, MutableBytes output);
  Result<SwsContext*> ScalerFor(const Shape& shape);

  std::vector<Scaler> scalers_;  // most recently used last
  std::vector<uint8_t> scratch_;
};

}  // namespace forebay::media::ffmpeg
