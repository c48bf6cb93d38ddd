// OpenCV's bilinear resize of bytes: two neighbours in each direction, weights of 11 bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/resample.h"

namespace forebay::ops {
namespace {

constexpr float kOne = 2048;

struct Neighbours {
  int64_t first, second;
  int32_t of_first, of_second;
};

int32_t Weight(float share) { return static_cast<int32_t>(std::nearbyint(share * kOne)); }

// At the edges `clamp_weight` gives all to the edge's pixel; without, both neighbours are it.
Neighbours NeighboursOf(int64_t at, int64_t in, int64_t out, bool clamp_weight) {
  const double scale = 1.0 / (static_cast<double>(out) / static_cast<double>(in));
  auto share = static_cast<float>((static_cast<double>(at) + 0.5) * scale - 0.5);
  auto first = static_cast<int64_t>(std::floor(share));
  share -= static_cast<float>(first);
  if (clamp_weight && (first < 0 || first >= in - 1)) share = 0;
  const int64_t second = std::clamp<int64_t>(first + 1, 0, in - 1);
  first = std::clamp<int64_t>(first, 0, in - 1);
  return {first, second, Weight(1.0F - share), Weight(share)};
}

// OpenCV takes the mean of four where both sides are exactly halved.
void Halve(const ImageView& from, const Rect& window, Image* into) {
  const auto step = static_cast<size_t>(from.channels);
  for (int64_t y = 0; y < window.height; ++y) {
    const uint8_t* above = from.Row(2 * (window.y + y)) + 2 * window.x * from.channels;
    const uint8_t* below = above + from.stride;
    uint8_t* to = into->Row(y);
    for (int64_t x = 0; x < window.width; ++x, above += step, below += step) {
      for (size_t c = 0; c < step; ++c, ++above, ++below) {
        *to++ = static_cast<uint8_t>((above[0] + above[step] + below[0] + below[step] + 2) >> 2);
      }
    }
  }
}

}  // namespace

ImageView Resampler::RunOpenCv(const ImageView& pixels, Image* into) {
  if (from_ == to_) return pixels.Cropped(window_);
  into->Reset(window_.width, window_.height, pixels.channels);
  if (from_.width == 2 * to_.width && from_.height == 2 * to_.height) {
    Halve(pixels, window_, into);
    return into->view();
  }
  std::vector<Neighbours> columns;
  columns.reserve(static_cast<size_t>(window_.width));
  for (int64_t x = 0; x < window_.width; ++x) {
    columns.push_back(NeighboursOf(window_.x + x, from_.width, to_.width, true));
  }
  const auto channels = static_cast<size_t>(pixels.channels);
  for (int64_t y = 0; y < window_.height; ++y) {
    const Neighbours row = NeighboursOf(window_.y + y, from_.height, to_.height, false);
    const uint8_t* above = pixels.Row(row.first);
    const uint8_t* below = pixels.Row(row.second);
    uint8_t* to = into->Row(y);
    for (const Neighbours& column : columns) {
      const auto left = static_cast<size_t>(column.first) * channels;
      const auto right = static_cast<size_t>(column.second) * channels;
      for (size_t c = 0; c < channels; ++c) {
        const auto across = [&](const uint8_t* from) {
          return (from[left + c] * column.of_first + from[right + c] * column.of_second) >> 4;
        };
        const int32_t sum =
            ((row.of_first * across(above)) >> 16) + ((row.of_second * across(below)) >> 16);
        *to++ = static_cast<uint8_t>((sum + 2) >> 2);
      }
    }
  }
  return into->view();
}

}  // namespace forebay::ops
