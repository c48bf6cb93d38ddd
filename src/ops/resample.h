// Resizing, equal to Pillow's `resize` byte for byte: separable filters widened when shrinking,
// coefficients of 22 fractional bits, rows first; and OpenCV's bilinear of no antialiasing.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/ops.h"
#include "ops/image.h"

namespace forebay::ops {

// Where each output pixel of one axis comes from, and how much of each.
struct AxisWeights {
  struct Span {
    int32_t first = 0, count = 0;
  };
  std::vector<Span> spans;       // of the outputs within the window
  std::vector<int32_t> weights;  // `stride` of each, those after `count` 0
  int32_t stride = 0;            // even
  // The same for multiplying 16-bit numbers: of each two weights their lower 15 bits, side by side,
  // and what is above.
  std::vector<int32_t> pairs;

  // Of `out` pixels made from `in`, those from `from` to `from + count`.
  void Set(int64_t in, int64_t out, int64_t from, int64_t count, ResizeFilter filter);
  int32_t pairs_of(size_t output) const { return (spans[output].count + 1) / 2; }
  // The inputs that any of them reads.
  int32_t first() const { return spans.front().first; }
  int32_t end() const { return spans.back().first + spans.back().count; }
};

// A resize of which only `window` is wanted, planned before the pixels are there, so that only
// those it needs have to be decoded.
class Resampler {
 public:
  void Plan(const Size& from, const Size& to, const Rect& window, ResizeFilter filter);
  // What of the source has to be there.
  Rect source() const { return source_; }
  // `pixels` are those of `source()`; `into` becomes those of the window. `pixels` itself is
  // returned where nothing has to be done.
  ImageView Run(const ImageView& pixels, Image* into);

 private:
  ImageView RunPillow(const ImageView& pixels, Image* into);
  ImageView RunOpenCv(const ImageView& pixels, Image* into);

  Size from_, to_;
  Rect window_, source_;
  ResizeFilter filter_ = ResizeFilter::kBilinear;
  AxisWeights columns_, rows_;
  Image between_;
};

}  // namespace forebay::ops
