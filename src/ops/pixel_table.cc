#include "ops/pixel_table.h"

#include <fmt/core.h>

#include <cstring>

#include "base/assert.h"
#include "ops/dtype.h"

namespace forebay::ops {
namespace {

constexpr size_t kValues = 256;

// One row of `width` pixels. `to` is where the row's first channel goes; in CHW the next channel is
// `plane` further.
template <class T, int Channels, bool Chw>
void WriteRow(const T* table, const uint8_t* from, int64_t width, bool mirrored, size_t plane,
              T* to) {
  const int64_t step = mirrored ? -Channels : Channels;
  if (mirrored) from += (width - 1) * Channels;
  for (int64_t x = 0; x < width; ++x, from += step) {
    for (size_t c = 0; c < Channels; ++c) {
      const T value = table[c * kValues + from[c]];
      if constexpr (Chw) {
        to[c * plane + static_cast<size_t>(x)] = value;
      } else {
        *to++ = value;
      }
    }
  }
}

template <class T, int Channels, bool Chw>
void WriteAll(const T* table, const ImageView& image, bool mirrored, T* to) {
  const auto width = static_cast<size_t>(image.width);
  const size_t plane = width * static_cast<size_t>(image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    T* row = to + static_cast<size_t>(y) * width * (Chw ? 1 : Channels);
    WriteRow<T, Channels, Chw>(table, image.Row(y), image.width, mirrored, plane, row);
  }
}

template <class T, int Channels>
void WriteLayout(const T* table, const ImageView& image, bool mirrored, bool chw, T* to) {
  if (chw && Channels > 1) {
    WriteAll<T, Channels, true>(table, image, mirrored, to);
  } else {
    WriteAll<T, Channels, false>(table, image, mirrored, to);
  }
}

template <class T>
void WriteChannels(const T* table, const ImageView& image, bool mirrored, bool chw,
                   MutableBytes out) {
  FB_ASSERT(out.size() == image.row_bytes() * static_cast<size_t>(image.height) * sizeof(T));
  T* to = reinterpret_cast<T*>(out.data());
  switch (image.channels) {
    case 1:
      return WriteLayout<T, 1>(table, image, mirrored, chw, to);
    case 2:
      return WriteLayout<T, 2>(table, image, mirrored, chw, to);
    case 3:
      return WriteLayout<T, 3>(table, image, mirrored, chw, to);
    default:
      FB_ASSERT(image.channels == 4);
      return WriteLayout<T, 4>(table, image, mirrored, chw, to);
  }
}

// The bytes themselves.
struct Identity {
  uint8_t values[4 * kValues];
  constexpr Identity() : values() {
    for (size_t i = 0; i < 4 * kValues; ++i) values[i] = static_cast<uint8_t>(i);
  }
};
constexpr Identity kIdentity;

}  // namespace

Status PixelTable::Append(const ToDtypeOp& op) {
  if (op.dtype == dtype_ && dtype_ == "uint8") return {};
  if (op.dtype == "uint8") {
    return Status(Code::kInvalidArgument, fmt::format("to_dtype: uint8 out of {}", dtype_));
  }
  if (dtype_ == "float16" || dtype_ == "bfloat16") {
    return Status(
        Code::kInvalidArgument,
        fmt::format("to_dtype: {} out of {}, which has been rounded already", op.dtype, dtype_));
  }
  if (dtype_ == "uint8") steps_.push_back({.scale = op.scale});
  dtype_ = op.dtype;
  return {};
}

Status PixelTable::Append(const NormalizeOp& op) {
  if (dtype_ == "float16" || dtype_ == "bfloat16") {
    return Status(Code::kInvalidArgument,
                  fmt::format("normalize: of {}; put it before to_dtype", dtype_));
  }
  if (mean_count_ != 0 && mean_count_ != op.mean.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("normalize: {} values after one of {}", op.mean.size(), mean_count_));
  }
  mean_count_ = op.mean.size();
  steps_.push_back({.scale = dtype_ == "uint8",
                    .mean = {op.mean.begin(), op.mean.end()},
                    .std = {op.std.begin(), op.std.end()}});
  dtype_ = "float32";
  return {};
}

void PixelTable::Finish(int channels) {
  if (dtype_ == "uint8") return;
  float32_.clear();
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    for (size_t i = 0; i < kValues; ++i) {
      auto value = static_cast<float>(i);
      for (const Step& step : steps_) {
        if (step.scale) value /= 255.0F;
        if (!step.mean.empty()) value = (value - step.mean[c]) / step.std[c];
      }
      float32_.push_back(value);
    }
  }
  if (dtype_ == "float32") return;
  for (const float value : float32_) {
    float16_.push_back(dtype_ == "float16" ? ToFloat16(value) : ToBfloat16(value));
  }
}

void PixelTable::Write(const ImageView& image, bool mirrored, bool chw, MutableBytes out) const {
  if (dtype_ == "float32") {
    WriteChannels(float32_.data(), image, mirrored, chw, out);
  } else if (dtype_ != "uint8") {
    WriteChannels(float16_.data(), image, mirrored, chw, out);
  } else if (mirrored || (chw && image.channels > 1)) {
    WriteChannels(kIdentity.values, image, mirrored, chw, out);
  } else {
    for (int64_t y = 0; y < image.height; ++y) {
      std::memcpy(out.data() + static_cast<size_t>(y) * image.row_bytes(), image.Row(y),
                  image.row_bytes());
    }
  }
}

}  // namespace forebay::ops
