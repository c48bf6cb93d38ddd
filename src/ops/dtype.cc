#include "ops/dtype.h"

#include <bit>

namespace forebay::ops {
namespace {

struct Type {
  std::string_view name;
  int64_t bytes;
};

constexpr Type kTypes[] = {{"bool", 1},    {"uint8", 1},   {"int8", 1},    {"uint16", 2},
                           {"int16", 2},   {"uint32", 4},  {"int32", 4},   {"uint64", 8},
                           {"int64", 8},   {"float16", 2}, {"float32", 4}, {"float64", 8},
                           {"bfloat16", 2}};

}  // namespace

int64_t BytesOf(std::string_view dtype) {
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

uint64_t BytesOf(std::string_view dtype, const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t bytes = BytesOf(dtype);
  for (const int64_t side : shape) {
    if (side < 1 || bytes == 0 || side > kMost / bytes) return 0;
    bytes *= side;
  }
  return static_cast<uint64_t>(bytes);
}

uint16_t ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFF'FFFF;
  constexpr uint32_t kInfinity = 0x7F80'0000;
  constexpr uint32_t kTooLarge = 0x4780'0000;  // 2^16
  constexpr uint32_t kNormal = 0x3880'0000;    // 2^-14
  if (magnitude > kInfinity) return sign | 0x7E00;
  if (magnitude >= kTooLarge) return sign | 0x7C00;
  if (magnitude < kNormal) {
    // Adding a half makes the sum's last bit the result's, rounded by the addition itself.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F00'0000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude - (uint32_t{112} << 23) + 0xFFF + odd) >> 13));
}

uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFF'FFFF) > 0x7F80'0000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace forebay::ops
