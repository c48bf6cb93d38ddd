#include "ops/resample.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "base/crc64.h"
#include "base/random.h"
#include "ops/resample_rows.h"
#include "testing/ops_images.h"

namespace forebay::ops {
namespace {

constexpr ResizeFilter kFilters[] = {ResizeFilter::kBilinear, ResizeFilter::kBicubic,
                                     ResizeFilter::kLanczos, ResizeFilter::kBox,
                                     ResizeFilter::kOpenCvBilinear};

// A picture in an Image, with bytes behind it that no result may depend on.
void Fill(const testing::Picture& picture, uint8_t slack, Image* image) {
  image->Reset(picture.width, picture.height, picture.channels);
  std::ranges::copy(picture.pixels, image->Row(0));
  std::fill_n(image->Row(picture.height), ImageView::kSlack, slack);
}

std::string Copy(const ImageView& view) {
  std::string bytes;
  for (int64_t y = 0; y < view.height; ++y) {
    bytes.append(reinterpret_cast<const char*>(view.Row(y)), view.row_bytes());
  }
  return bytes;
}

std::string Resize(const ImageView& from, const Size& to, const Rect& window, ResizeFilter filter) {
  Resampler resampler;
  resampler.Plan(from.size(), to, window, filter);
  Image into;
  return Copy(resampler.Run(from.Cropped(resampler.source()), &into));
}

class RandomSizes {
 public:
  explicit RandomSizes(uint64_t seed) : random_(seed) {}
  int64_t Upto(int64_t most) {
    return 1 + static_cast<int64_t>(random_.NextBelow(static_cast<uint64_t>(most)));
  }

 private:
  Random random_;
};

TEST(Resample, an_even_image_stays_even) {
  RandomSizes sizes(1);
  for (const ResizeFilter filter : kFilters) {
    for (int i = 0; i < 40; ++i) {
      testing::Picture picture{
          static_cast<int>(sizes.Upto(60)), static_cast<int>(sizes.Upto(60)), 3, {}};
      const auto value = static_cast<uint8_t>(sizes.Upto(255));
      const auto pixels = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height);
      picture.pixels.assign(3 * pixels, value);
      Image image;
      Fill(picture, 99, &image);
      const Size to = {sizes.Upto(80), sizes.Upto(80)};
      const std::string bytes = Resize(image.view(), to, {0, 0, to.width, to.height}, filter);
      EXPECT_EQ(bytes, std::string(static_cast<size_t>(to.width * to.height * 3),
                                   static_cast<char>(value)));
    }
  }
}

TEST(Resample, the_same_size_is_the_same_image) {
  Image image;
  Fill(testing::MakePicture(13, 9, 3, 1), 0, &image);
  for (const ResizeFilter filter : kFilters) {
    EXPECT_EQ(Resize(image.view(), {13, 9}, {0, 0, 13, 9}, filter), Copy(image.view()));
    EXPECT_EQ(Resize(image.view(), {13, 9}, {2, 3, 5, 4}, filter),
              Copy(image.view().Cropped({2, 3, 5, 4})));
  }
}

TEST(Resample, a_window_is_that_part_of_the_whole) {
  RandomSizes sizes(2);
  for (const ResizeFilter filter : kFilters) {
    for (uint64_t i = 0; i < 40; ++i) {
      Image image;
      Fill(testing::MakePicture(static_cast<int>(sizes.Upto(70)), static_cast<int>(sizes.Upto(70)),
                                3, i),
           0, &image);
      const Size to = {sizes.Upto(90), sizes.Upto(90)};
      Rect window = {sizes.Upto(to.width) - 1, sizes.Upto(to.height) - 1, 0, 0};
      window.width = sizes.Upto(to.width - window.x);
      window.height = sizes.Upto(to.height - window.y);
      Resampler resampler;
      resampler.Plan(image.view().size(), to, {0, 0, to.width, to.height}, filter);
      Image whole;
      const ImageView all = resampler.Run(image.view().Cropped(resampler.source()), &whole);
      EXPECT_EQ(Resize(image.view(), to, window, filter), Copy(all.Cropped(window)));
    }
  }
}

TEST(Resample, the_bytes_behind_an_image_play_no_part) {
  RandomSizes sizes(3);
  for (const int channels : {1, 2, 3, 4}) {
    for (uint64_t i = 0; i < 40; ++i) {
      const auto picture = testing::MakePicture(static_cast<int>(sizes.Upto(40)),
                                                static_cast<int>(sizes.Upto(20)), channels, i);
      const Size to = {sizes.Upto(60), sizes.Upto(30)};
      const Rect all = {0, 0, to.width, to.height};
      Image zeros, ones;
      Fill(picture, 0, &zeros);
      Fill(picture, 255, &ones);
      EXPECT_EQ(Resize(zeros.view(), to, all, ResizeFilter::kBicubic),
                Resize(ones.view(), to, all, ResizeFilter::kBicubic));
    }
  }
}

// What both passes do, pixel by pixel.
int Plain(const AxisWeights& weights, size_t output, const uint8_t* from, size_t step) {
  const AxisWeights::Span& span = weights.spans[output];
  int64_t sum = int64_t{1} << (kWeightBits - 1);
  for (int32_t k = 0; k < span.count; ++k) {
    sum += int64_t{weights.weights[output * static_cast<size_t>(weights.stride) +
                                   static_cast<size_t>(k)]} *
           from[static_cast<size_t>(span.first + k) * step];
  }
  return static_cast<int>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255));
}

TEST(Resample, both_passes_are_the_plain_sums) {
  RandomSizes sizes(4);
  for (const int channels : {1, 2, 3, 4}) {
    for (const ResizeFilter filter : {ResizeFilter::kBilinear, ResizeFilter::kLanczos}) {
      for (uint64_t i = 0; i < 12; ++i) {
        Image image, across, down;
        Fill(testing::MakePicture(static_cast<int>(sizes.Upto(300)),
                                  static_cast<int>(sizes.Upto(300)), channels, i),
             7, &image);
        const ImageView& from = image.view();
        const auto step = static_cast<size_t>(channels);
        AxisWeights weights;
        const int64_t width = sizes.Upto(100), height = sizes.Upto(100);
        weights.Set(from.width, width, 0, width, filter);
        across.Reset(width, from.height, channels);
        ResampleColumns(weights, 0, from, &across);
        Image plain;
        plain.Reset(width, from.height, channels);
        ResampleColumnsPlain(weights, 0, from, &plain);
        EXPECT_EQ(Copy(plain.view()), Copy(across.view()));
        int wrong = 0;
        for (int64_t y = 0; y < from.height; ++y) {
          for (size_t x = 0; x < across.view().row_bytes(); ++x) {
            wrong += across.Row(y)[x] != Plain(weights, x / step, from.Row(y) + x % step, step);
          }
        }
        weights.Set(from.height, height, 0, height, filter);
        down.Reset(from.width, height, channels);
        ResampleRows(weights, 0, from, &down);
        plain.Reset(from.width, height, channels);
        ResampleRowsPlain(weights, 0, from, &plain);
        EXPECT_EQ(Copy(plain.view()), Copy(down.view()));
        for (int64_t y = 0; y < height; ++y) {
          for (size_t x = 0; x < from.row_bytes(); ++x) {
            wrong += down.Row(y)[x] !=
                     Plain(weights, static_cast<size_t>(y), from.data + x, from.stride);
          }
        }
        EXPECT_EQ(wrong, 0) << channels << " " << i;
      }
    }
  }
}

// Checksums of what cv2.resize (OpenCV 4.6, INTER_LINEAR) makes of these pictures.
TEST(Resample, opencv_is_matched) {
  Image image;
  Fill(testing::MakePicture(61, 47, 3, 1), 0, &image);
  Crc64 crc;
  for (const Size to : {Size{40, 30}, Size{61, 20}, Size{122, 94}, Size{100, 200}, Size{7, 3}}) {
    const std::string bytes =
        Resize(image.view(), to, {0, 0, to.width, to.height}, ResizeFilter::kOpenCvBilinear);
    crc.Add(AsBytes(bytes));
  }
  Fill(testing::MakePicture(62, 48, 3, 2), 0, &image);
  crc.Add(AsBytes(Resize(image.view(), {31, 24}, {0, 0, 31, 24}, ResizeFilter::kOpenCvBilinear)));
  EXPECT_EQ(crc.value(), 4408597048457709594U);
}

TEST(Resample, opencv_takes_two_neighbours_whatever_the_scale) {
  // cv2.resize of these, computed by hand: no antialiasing, so most of the input plays no part.
  Image image;
  testing::Picture picture{8, 1, 1, {0, 10, 20, 30, 40, 50, 60, 70}};
  Fill(picture, 0, &image);
  EXPECT_EQ(Resize(image.view(), {2, 1}, {0, 0, 2, 1}, ResizeFilter::kOpenCvBilinear),
            "\x0F\x37");  // 15, 55: at 1.5 and 5.5
  EXPECT_EQ(Resize(image.view(), {16, 1}, {0, 0, 4, 1}, ResizeFilter::kOpenCvBilinear),
            std::string("\0\x03\x08\x0D", 4));  // 0, 2.5, 7.5, 12.5
}

}  // namespace
}  // namespace forebay::ops
