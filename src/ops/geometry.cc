#include "ops/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace forebay::ops {
namespace {

constexpr int kTries = 10;

// Python's round: halves to even, the mode that nobody changes.
int64_t Round(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

double Real(int64_t x) { return static_cast<double>(x); }

// Where an axis of `image` begins that is cut to, or filled up to, `crop`.
int64_t CenterStart(int64_t crop, int64_t image) {
  if (crop > image) return -((crop - image) / 2);
  return Round(Real(image - crop) / 2.0);
}

Rect CentredFallback(const RandomResizedCropOp& op, const Size& image) {
  const double narrowest = std::min(op.ratio[0], op.ratio[1]);
  const double widest = std::max(op.ratio[0], op.ratio[1]);
  const double ratio = Real(image.width) / Real(image.height);
  Size crop = image;
  if (ratio < narrowest) {
    crop.height = Round(Real(crop.width) / narrowest);
  } else if (ratio > widest) {
    crop.width = Round(Real(crop.height) * widest);
  }
  crop.width = std::clamp<int64_t>(crop.width, 1, image.width);
  crop.height = std::clamp<int64_t>(crop.height, 1, image.height);
  return {(image.width - crop.width) / 2, (image.height - crop.height) / 2, crop.width,
          crop.height};
}

}  // namespace

// x = m * 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)) by its series.
double PortableLog(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);
  const double t2 = t * t;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) sum = (sum + 1.0 / k) * t2;
  return 2 * (t + t * sum) + exponent * std::numbers::ln2;
}

// x = n ln 2 + r, and e^r by its series.
double PortableExp(double x) {
  const double n = std::nearbyint(x / std::numbers::ln2);
  const double r = x - n * std::numbers::ln2;
  double sum = 1;
  for (int k = 20; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

Size ResizedSize(const ResizeOp& op, const Size& image) {
  if (op.width > 0) return {op.width, op.height};
  const int64_t shorter = std::min(image.width, image.height);
  const int64_t longer = std::max(image.width, image.height);
  // Python's int(a * b / c): the products are exact well beyond any image's size.
  const auto scaled = static_cast<int64_t>(Real(op.height * longer) / Real(shorter));
  return image.width <= image.height ? Size{op.height, scaled} : Size{scaled, op.height};
}

Rect CenterCropRect(const CenterCropOp& op, const Size& image) {
  return {CenterStart(op.width, image.width), CenterStart(op.height, image.height), op.width,
          op.height};
}

Rect DrawCrop(const RandomResizedCropOp& op, const Size& image, KeyedRandom* random) {
  const double area = Real(image.width) * Real(image.height);
  const std::array<double, 2> log_ratio = {PortableLog(op.ratio[0]), PortableLog(op.ratio[1])};
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * random->NextUniform(op.scale[0], op.scale[1]);
    const double ratio = PortableExp(random->NextUniform(log_ratio[0], log_ratio[1]));
    const int64_t width = Round(std::sqrt(wanted * ratio));
    const int64_t height = Round(std::sqrt(wanted / ratio));
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random->NextBelow(static_cast<uint64_t>(n)));
    };
    const int64_t y = below(image.height - height + 1);
    const int64_t x = below(image.width - width + 1);
    return {x, y, width, height};
  }
  return CentredFallback(op, image);
}

}  // namespace forebay::ops
