#include <gtest/gtest.h>

#include <cmath>

#include "forebay/ops.h"

namespace forebay {
namespace {

TEST(DescribeOp, tells_every_argument) {
  EXPECT_EQ(DescribeOp(ResizeOp{.height = 256}), "resize(height=256, width=0, filter=bilinear)");
  EXPECT_EQ(DescribeOp(RandomResizedCropOp{.height = 224, .width = 192}),
            "random_resized_crop(height=224, width=192, scale=[0.08, 1], "
            "ratio=[0.75, 1.3333333333333333], filter=bilinear)");
  EXPECT_EQ(DescribeOp(NormalizeOp{{0.5}, {0.25}}), "normalize(mean=[0.5], std=[0.25])");
  EXPECT_EQ(DescribeOp(ParseExampleOp{"data", {{"a", "b", "int64", {2}, true, 3}}}),
            "parse_example(field=data, features=[a -> b (int64 [2], default=3)])");
  EXPECT_EQ(DescribeOp(ParseJsonOp{"json", {{"/a", "b", "bool", {}}}}),
            "parse_json(field=json, fields=[/a -> b (bool [])])");
  EXPECT_EQ(DescribeOp(SelectOp{{"a", "b"}}), "select(fields=[a, b])");
}

TEST(ValidateOp, names_op_and_argument) {
  const std::vector<std::pair<Op, std::string>> cases = {
      {DecodeImageOp{.field = ""}, "decode_image: field"},
      {DecodeImageOp{.mode = "BGR"}, "decode_image: mode is 'BGR'"},
      {DecodeImageOp{.orientation = "yes"}, "decode_image: orientation"},
      {DecodeImageOp{.cmyk = "yes"}, "decode_image: cmyk"},
      {DecodeImageOp{.grey16 = "yes"}, "decode_image: grey16"},
      {DecodeImageOp{.pixels_max = 0}, "decode_image: pixels_max"},
      {ResizeOp{.height = 0}, "resize: height is 0"},
      {ResizeOp{.height = 8, .width = -1}, "resize: width is -1"},
      {ResizeOp{.height = 70'000}, "resize: height"},
      {CenterCropOp{.height = 8}, "center_crop: width is 0"},
      {RandomResizedCropOp{.height = 8, .width = 8, .scale = {0, 1}}, "scale"},
      {RandomResizedCropOp{.height = 8, .width = 8, .scale = {0.5, 1.5}}, "scale"},
      {RandomResizedCropOp{.height = 8, .width = 8, .ratio = {2, 1}}, "ratio"},
      {RandomResizedCropOp{.height = 8, .width = 8, .ratio = {1, std::nan("")}}, "ratio"},
      {RandomHorizontalFlipOp{1.5}, "random_horizontal_flip: p is 1.5"},
      {ColorJitterOp{.hue = 0.6}, "color_jitter: hue"},
      {ColorJitterOp{.contrast = -1}, "color_jitter"},
      {NormalizeOp{{0.5}, {0}}, "normalize: std is 0"},
      {NormalizeOp{{0.5}, {1, 1}}, "normalize: 1 values of mean and 2 of std"},
      {ToDtypeOp{"float64"}, "to_dtype: dtype is 'float64'"},
      {ParseNpyOp{"npy", "object", {1}}, "parse_npy: dtype is 'object'"},
      {ParseNpyOp{"npy", "uint8", {1 << 20, 1 << 20}}, "parse_npy: the shape"},
      {ParseJsonOp{"json", {{"label", "a"}}}, "does not begin with /"},
      {ParseExampleOp{"data", {{"a"}, {"a"}}}, "'a' is named twice"},
      {ParseExampleOp{"data", {{"a", "", "int64", {}, true, 0.5}}}, "is no integer"},
      {ParseExampleOp{"data", {{"a", "", "bytes", {2}}}}, "neither shape nor"},
      {SelectOp{}, "select: fields"},
      {RenameOp{"a", ""}, "rename: field"}};
  for (const auto& [op, text] : cases) {
    const Status status = ValidateOp(op);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(status.ToString().find(text), std::string::npos) << status.ToString();
  }
  EXPECT_TRUE(ValidateOp(ResizeOp{.height = 256}).ok());
  EXPECT_TRUE(ValidateOp(ColorJitterOp{0.4, 0.4, 0.4, 0.1}).ok());
}

}  // namespace
}  // namespace forebay
