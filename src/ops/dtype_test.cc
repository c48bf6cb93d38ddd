#include "ops/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace forebay::ops {
namespace {

float FromFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023);
  const float value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

TEST(Dtype, halves_come_back_and_what_is_between_goes_to_the_nearest) {
  constexpr uint16_t kInfinity = 0x7C00;
  for (uint16_t bits = 0; bits < kInfinity; ++bits) {
    const float value = FromFloat16(bits);
    ASSERT_EQ(ToFloat16(value), bits);
    ASSERT_EQ(ToFloat16(-value), bits | 0x8000);
    // 65520, half a step above the largest, is infinity: so the step above counts as a number.
    const auto above = static_cast<uint16_t>(bits + 1);
    const float next = above == kInfinity ? 65536.0F : FromFloat16(above);
    const float middle = value + (next - value) / 2;
    ASSERT_EQ(ToFloat16(middle), (bits & 1) == 0 ? bits : above) << bits;
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 1e9F)), above);
  }
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::infinity()), kInfinity);
  EXPECT_GT(ToFloat16(std::nanf("")) & 0x7FFF, kInfinity);
}

TEST(Dtype, bfloat16_rounds_to_the_nearest) {
  EXPECT_EQ(ToBfloat16(1.0F), 0x3F80);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // half: to even
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(ToBfloat16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);
}

TEST(Dtype, sizes_are_checked) {
  EXPECT_EQ(BytesOf("float32", {2, 3}), 24U);
  EXPECT_EQ(BytesOf("int64", {}), 8U);
  EXPECT_EQ(BytesOf("object", {2}), 0U);
  EXPECT_EQ(BytesOf("uint8", {0}), 0U);
  EXPECT_EQ(BytesOf("uint8", {int64_t{1} << 40, 2}), 0U);
  EXPECT_EQ(BytesOf("uint8", {INT64_MAX, INT64_MAX}), 0U);
}

}  // namespace
}  // namespace forebay::ops
