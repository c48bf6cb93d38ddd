#include "ops/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "ops/resample_rows.h"

namespace forebay::ops {
namespace {

double Bilinear(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double Bicubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double Sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double Lanczos(double x) { return -3.0 <= x && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0; }

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel KernelOf(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kBicubic:
      return {Bicubic, 2.0};
    case ResizeFilter::kLanczos:
      return {Lanczos, 3.0};
    case ResizeFilter::kBox:
      return {Box, 0.5};
    default:
      return {Bilinear, 1.0};
  }
}

// As a cast of C: towards 0.
int32_t CutOff(double x) { return static_cast<int32_t>(x); }

int32_t Fixed(double weight) {
  constexpr double kOne = 1 << kWeightBits;
  return CutOff(weight < 0 ? -0.5 + weight * kOne : 0.5 + weight * kOne);
}

constexpr int32_t kLow = (1 << kLowBits) - 1;

int32_t Pack(int32_t first, int32_t second) {
  return static_cast<int32_t>(static_cast<uint32_t>(second) << 16 |
                              (static_cast<uint32_t>(first) & 0xFFFF));
}

}  // namespace

void AxisWeights::Set(int64_t in, int64_t out, int64_t from, int64_t count, ResizeFilter filter) {
  const Kernel kernel = KernelOf(filter);
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double widened = std::max(scale, 1.0);
  const double support = kernel.support * widened;
  const double per_input = 1.0 / widened;
  const auto most = static_cast<int32_t>(std::ceil(support)) * 2 + 1;
  stride = (most + 1) & ~1;
  spans.resize(static_cast<size_t>(count));
  weights.assign(static_cast<size_t>(count) * static_cast<size_t>(stride), 0);
  std::vector<double> exact(static_cast<size_t>(most));
  for (int64_t i = 0; i < count; ++i) {
    const double center = (static_cast<double>(from + i) + 0.5) * scale;
    const auto first = std::max(CutOff(center - support + 0.5), 0);
    const auto end = std::min(CutOff(center + support + 0.5), static_cast<int32_t>(in));
    const auto used = static_cast<size_t>(end - first);
    double sum = 0.0;
    for (size_t k = 0; k < used; ++k) {
      const double at = static_cast<double>(static_cast<int32_t>(k) + first);
      exact[k] = kernel.weight((at - center + 0.5) * per_input);
      sum += exact[k];
    }
    int32_t* to = &weights[static_cast<size_t>(i) * static_cast<size_t>(stride)];
    for (size_t k = 0; k < used; ++k) to[k] = Fixed(sum != 0.0 ? exact[k] / sum : exact[k]);
    spans[static_cast<size_t>(i)] = {first, end - first};
  }
  pairs.resize(weights.size());
  for (size_t k = 0; k < weights.size(); k += 2) {
    pairs[k] = Pack(weights[k] & kLow, weights[k + 1] & kLow);
    pairs[k + 1] = Pack(weights[k] >> kLowBits, weights[k + 1] >> kLowBits);
  }
}

void Resampler::Plan(const Size& from, const Size& to, const Rect& window, ResizeFilter filter) {
  from_ = from;
  to_ = to;
  window_ = window;
  filter_ = filter;
  source_ = {0, 0, from.width, from.height};
  if (filter == ResizeFilter::kOpenCvBilinear) return;
  // An axis that keeps its length is not filtered.
  if (from.width != to.width) {
    columns_.Set(from.width, to.width, window.x, window.width, filter);
    source_.x = columns_.first();
    source_.width = columns_.end() - columns_.first();
  } else {
    source_.x = window.x;
    source_.width = window.width;
  }
  if (from.height != to.height) {
    rows_.Set(from.height, to.height, window.y, window.height, filter);
    source_.y = rows_.first();
    source_.height = rows_.end() - rows_.first();
  } else {
    source_.y = window.y;
    source_.height = window.height;
  }
}

ImageView Resampler::Run(const ImageView& pixels, Image* into) {
  return filter_ == ResizeFilter::kOpenCvBilinear ? RunOpenCv(pixels, into)
                                                  : RunPillow(pixels, into);
}

ImageView Resampler::RunPillow(const ImageView& pixels, Image* into) {
  ImageView now = pixels;
  if (from_.width != to_.width) {
    Image* target = from_.height != to_.height ? &between_ : into;
    target->Reset(window_.width, now.height, now.channels);
    ResampleColumns(columns_, source_.x, now, target);
    now = target->view();
  }
  if (from_.height != to_.height) {
    into->Reset(now.width, window_.height, now.channels);
    ResampleRows(rows_, source_.y, now, into);
    now = into->view();
  }
  return now;
}

}  // namespace forebay::ops
