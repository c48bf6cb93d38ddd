#include "ops/color.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace forebay::ops {
namespace {

uint8_t Grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// Pillow's blend of two bytes: in floats, cut off.
uint8_t Blend(int from, int to, float factor) {
  const float mixed =
      static_cast<float>(from) + factor * (static_cast<float>(to) - static_cast<float>(from));
  if (mixed <= 0.0F) return 0;
  return mixed >= 255.0F ? 255 : static_cast<uint8_t>(mixed);
}

void BlendWithOne(int value, float factor, Image* image) {
  std::array<uint8_t, 256> table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = Blend(value, i, factor);
  const ImageView& view = image->view();
  for (int64_t y = 0; y < view.height; ++y) {
    uint8_t* row = image->Row(y);
    for (size_t x = 0; x < view.row_bytes(); ++x) row[x] = table[row[x]];
  }
}

// The mean of the grey image, rounded.
int MeanGrey(const ImageView& view) {
  uint64_t sum = 0;
  for (int64_t y = 0; y < view.height; ++y) {
    const uint8_t* row = view.Row(y);
    for (int64_t x = 0; x < view.width; ++x) sum += view.channels == 3 ? Grey(row + 3 * x) : row[x];
  }
  const auto pixels = static_cast<double>(view.width * view.height);
  const double rounded = static_cast<double>(sum) / pixels + 0.5;
  return static_cast<int>(rounded);
}

void ChangeSaturation(float factor, Image* image) {
  const ImageView& view = image->view();
  for (int64_t y = 0; y < view.height; ++y) {
    uint8_t* pixel = image->Row(y);
    for (int64_t x = 0; x < view.width; ++x, pixel += 3) {
      const int grey = Grey(pixel);
      for (int c = 0; c < 3; ++c) pixel[c] = Blend(grey, pixel[c], factor);
    }
  }
}

using Three = std::array<uint8_t, 3>;

uint8_t Clip(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

Three RgbToHsv(const uint8_t* rgb) {
  const auto [least, most] = std::minmax({rgb[0], rgb[1], rgb[2]});
  if (least == most) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float r = static_cast<float>(most - rgb[0]) / range;
  const float g = static_cast<float>(most - rgb[1]) / range;
  const float b = static_cast<float>(most - rgb[2]) / range;
  float hue;
  if (rgb[0] == most) {
    hue = b - g;
  } else if (rgb[1] == most) {
    hue = static_cast<float>(2.0 + static_cast<double>(r) - static_cast<double>(b));
  } else {
    hue = static_cast<float>(4.0 + static_cast<double>(g) - static_cast<double>(r));
  }
  hue = static_cast<float>(std::fmod(static_cast<double>(hue) / 6.0 + 1.0, 1.0));
  return {Clip(static_cast<int>(static_cast<double>(hue) * 255.0)),
          Clip(static_cast<int>(static_cast<double>(saturation) * 255.0)), most};
}

Three HsvToRgb(const Three& hsv) {
  const auto [hue, saturation, value] = hsv;
  if (saturation == 0) return {value, value, value};
  const double sixth = static_cast<double>(hue) * 6.0 / 255.0;
  const int sector = static_cast<int>(std::floor(sixth));
  const auto share = static_cast<float>(sixth - static_cast<double>(static_cast<float>(sector)));
  const float colour = static_cast<float>(saturation) / 255.0F;
  const auto scaled = [&](double by) {
    return Clip(static_cast<int>(std::round(static_cast<float>(value * by))));
  };
  const uint8_t p = scaled(1.0 - static_cast<double>(colour));
  const uint8_t q = scaled(1.0 - static_cast<double>(colour * share));
  const uint8_t t = scaled(1.0 - static_cast<double>(colour) * (1.0 - static_cast<double>(share)));
  switch (sector % 6) {
    case 0:
      return {value, t, p};
    case 1:
      return {q, value, p};
    case 2:
      return {p, value, t};
    case 3:
      return {p, q, value};
    case 4:
      return {t, p, value};
    default:
      return {value, p, q};
  }
}

void ShiftHue(double shift, Image* image) {
  const auto by = static_cast<uint8_t>(static_cast<int>(shift * 255));
  const ImageView& view = image->view();
  for (int64_t y = 0; y < view.height; ++y) {
    uint8_t* pixel = image->Row(y);
    for (int64_t x = 0; x < view.width; ++x, pixel += 3) {
      Three hsv = RgbToHsv(pixel);
      hsv[0] = static_cast<uint8_t>(hsv[0] + by);
      std::ranges::copy(HsvToRgb(hsv), pixel);
    }
  }
}

std::optional<double> Factor(double amount, KeyedRandom* random) {
  if (amount == 0) return std::nullopt;
  return random->NextUniform(std::max(0.0, 1 - amount), 1 + amount);
}

}  // namespace

void RgbToGrey(const uint8_t* from, int64_t pixels, uint8_t* to) {
  for (int64_t x = 0; x < pixels; ++x) to[x] = Grey(from + 3 * x);
}

void JitterColors(const ColorJitterOp& op, KeyedRandom* random, Image* image) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[random->NextBelow(i + 1)]);
  const auto brightness = Factor(op.brightness, random);
  const auto contrast = Factor(op.contrast, random);
  const auto saturation = Factor(op.saturation, random);
  const double hue = op.hue == 0 ? 0 : random->NextUniform(-op.hue, op.hue);
  const bool coloured = image->view().channels == 3;
  for (const int which : order) {
    if (which == 0 && brightness) {
      BlendWithOne(0, static_cast<float>(*brightness), image);
    } else if (which == 1 && contrast) {
      BlendWithOne(MeanGrey(image->view()), static_cast<float>(*contrast), image);
    } else if (which == 2 && saturation && coloured) {
      ChangeSaturation(static_cast<float>(*saturation), image);
    } else if (which == 3 && op.hue != 0 && coloured) {
      ShiftHue(hue, image);
    }
  }
}

}  // namespace forebay::ops
