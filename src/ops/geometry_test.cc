#include "ops/geometry.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forebay::ops {
namespace {

TEST(Geometry, portable_functions_are_as_good_as_the_librarys) {
  for (double x = 1e-3; x < 1e3; x *= 1.0037) {
    EXPECT_NEAR(PortableLog(x), std::log(x), 4e-16 * std::max(1.0, std::fabs(std::log(x))));
    const double y = std::log(x);
    EXPECT_NEAR(PortableExp(y) / std::exp(y), 1.0, 2e-15);
  }
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(0), 1);
}

TEST(Geometry, the_shorter_side_is_resized_as_told) {
  const ResizeOp op{.height = 256};
  EXPECT_EQ(ResizedSize(op, {500, 375}), (Size{341, 256}));
  EXPECT_EQ(ResizedSize(op, {375, 500}), (Size{256, 341}));
  EXPECT_EQ(ResizedSize(op, {300, 300}), (Size{256, 256}));
  EXPECT_EQ(ResizedSize({.height = 5, .width = 7}, {300, 20}), (Size{7, 5}));
}

TEST(Geometry, centred_crops_round_halves_to_even) {
  EXPECT_EQ(CenterCropRect({224, 224}, {341, 256}), (Rect{58, 16, 224, 224}));  // 58.5
  EXPECT_EQ(CenterCropRect({224, 224}, {343, 256}), (Rect{60, 16, 224, 224}));  // 59.5
  EXPECT_EQ(CenterCropRect({10, 10}, {7, 20}), (Rect{-1, 5, 10, 10}));
}

TEST(Geometry, random_crops_have_the_area_and_ratio_that_were_asked_for) {
  const RandomResizedCropOp op{.height = 224, .width = 224};
  const Size image = {500, 375};
  double area_sum = 0;
  constexpr int kSamples = 2000;
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    KeyedRandom random({.seed = 1, .op = "random_resized_crop", .sample = sample});
    const Rect crop = DrawCrop(op, image, &random);
    ASSERT_TRUE(crop.x >= 0 && crop.y >= 0 && crop.width > 0 && crop.height > 0);
    ASSERT_TRUE(crop.x + crop.width <= image.width && crop.y + crop.height <= image.height);
    const auto width = static_cast<double>(crop.width), height = static_cast<double>(crop.height);
    const double area = width * height / (500.0 * 375.0);
    EXPECT_GT(area, 0.078);
    // Rounding of a side of 122 or more moves the ratio by less than a hundredth.
    EXPECT_GT(width / height, 0.74);
    EXPECT_LT(width / height, 1.345);
    area_sum += area;
  }
  // Of torchvision's crops of such images; less than 0.54 as not all that are drawn fit.
  EXPECT_NEAR(area_sum / kSamples, 0.434, 0.015);
}

TEST(Geometry, where_no_crop_fits_the_largest_centred_one_is_taken) {
  const RandomResizedCropOp op{.height = 8, .width = 8};
  KeyedRandom random({.op = "random_resized_crop"});
  EXPECT_EQ(DrawCrop({.height = 8, .width = 8, .scale = {1, 1}}, {1000, 10}, &random),
            (Rect{493, 0, 13, 10}));
  EXPECT_EQ(DrawCrop({.height = 8, .width = 8, .scale = {1, 1}}, {10, 1000}, &random),
            (Rect{0, 493, 10, 13}));
  EXPECT_EQ(DrawCrop(op, {1, 1}, &random), (Rect{0, 0, 1, 1}));
}

// A crop is part of what a run is resumed to: it never changes.
TEST(Geometry, crops_are_frozen) {
  KeyedRandom random({.seed = 7, .op = "random_resized_crop", .epoch = 1, .sample = 42});
  EXPECT_EQ(DrawCrop({.height = 224, .width = 224}, {500, 375}, &random), (Rect{123, 3, 167, 223}));
}

}  // namespace
}  // namespace forebay::ops
