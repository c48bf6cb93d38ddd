#include "ops/decode_image.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "testing/ops_images.h"

namespace forebay::ops {
namespace {

using testing::EncodeJpeg;
using testing::EncodePng;
using testing::EncodeWebp;
using testing::JpegOptions;
using testing::MakePicture;
using testing::Picture;

struct Pixels {
  Size size;
  int channels = 0;
  std::string bytes;
  bool operator==(const Pixels&) const = default;
};

Pixels Copy(const ImageView& view) {
  Pixels pixels{view.size(), view.channels, {}};
  for (int64_t y = 0; y < view.height; ++y) {
    pixels.bytes.append(reinterpret_cast<const char*>(view.Row(y)), view.row_bytes());
  }
  return pixels;
}

Result<Pixels> DecodeWith(ImageDecoder* decoder, const std::string& file, const DecodeImageOp& op,
                          const Rect* region = nullptr) {
  // Of its own size exactly, so that a sanitizer sees the first byte read past it.
  const std::vector<std::byte> bytes(AsBytes(file).begin(), AsBytes(file).end());
  FB_ASSIGN_OR_RETURN(const Size size, decoder->Open(bytes, op));
  const Rect all = {0, 0, size.width, size.height};
  FB_ASSIGN_OR_RETURN(const ImageView view, decoder->Decode(region != nullptr ? *region : all));
  return Copy(view);
}

Result<Pixels> Decode(const std::string& file, const DecodeImageOp& op = {}) {
  ImageDecoder decoder;
  return DecodeWith(&decoder, file, op);
}

Pixels Cut(const Pixels& whole, const Rect& region) {
  const ImageView view = {.data = reinterpret_cast<const uint8_t*>(whole.bytes.data()),
                          .stride = static_cast<size_t>(whole.size.width * whole.channels),
                          .width = whole.size.width,
                          .height = whole.size.height,
                          .channels = whole.channels};
  return Copy(view.Cropped(region));
}

TEST(DecodeImage, every_narrow_part_of_a_jpeg_is_as_the_whole_one_cut) {
  ImageDecoder decoder;
  for (const JpegOptions& options :
       {JpegOptions{}, JpegOptions{.chroma_y = 1}, JpegOptions{.chroma_x = 1, .chroma_y = 1},
        JpegOptions{.chroma_x = 1}, JpegOptions{.chroma_x = 4, .chroma_y = 1},
        JpegOptions{.chroma_x = 3, .chroma_y = 1}, JpegOptions{.chroma_x = 4, .chroma_y = 2},
        JpegOptions{.progressive = true}, JpegOptions{.restart_rows = 1},
        JpegOptions{.arithmetic = true}}) {
    for (const int width : {1, 2, 3, 8, 15, 16, 17, 18, 19, 31, 32, 33, 34, 49, 50}) {
      const std::string file = EncodeJpeg(MakePicture(width, 21, 3, 1), options);
      const auto whole = DecodeWith(&decoder, file, {});
      ASSERT_TRUE(whole.ok()) << whole.status().ToString();
      for (int64_t x = 0; x < width; ++x) {
        for (const int64_t wide : {1, 2, 5, 17}) {
          if (x + wide > width) continue;
          const Rect region = {x, x % 19, wide, 2};
          EXPECT_EQ(*DecodeWith(&decoder, file, {}, &region), Cut(*whole, region))
              << width << " " << x << " " << wide << " " << options.chroma_x << options.chroma_y;
        }
      }
    }
  }
}

TEST(DecodeImage, random_parts_of_a_jpeg_are_as_the_whole_one_cut) {
  ImageDecoder decoder;
  Random random(1);
  for (uint64_t i = 0; i < 150; ++i) {
    const auto width = static_cast<int>(random.NextBelow(120)) + 1;
    const auto height = static_cast<int>(random.NextBelow(120)) + 1;
    const auto step = [&] { return static_cast<int>(random.NextBelow(2)) + 1; };
    const JpegOptions options{.chroma_x = step(), .chroma_y = step()};
    const int channels = i % 10 == 0 ? 1 : i % 10 == 1 ? 4 : 3;
    const std::string file = EncodeJpeg(MakePicture(width, height, channels, i), options);
    const auto whole = DecodeWith(&decoder, file, {});
    Rect region;
    region.x = static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(width)));
    region.y = static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(height)));
    region.width =
        1 + static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(width - region.x)));
    region.height =
        1 + static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(height - region.y)));
    EXPECT_EQ(*DecodeWith(&decoder, file, {}, &region), Cut(*whole, region)) << i;
  }
}

TEST(DecodeImage, lossless_files_give_back_their_pixels) {
  for (const int channels : {1, 2, 3, 4}) {
    const Picture picture = MakePicture(31, 17, channels, 1);
    const std::string stored(picture.pixels.begin(), picture.pixels.end());
    EXPECT_EQ(Decode(EncodePng(picture), {.mode = "unchanged"})->bytes, stored) << channels;
    if (channels < 3) continue;
    EXPECT_EQ(Decode(EncodeWebp(picture), {.mode = "unchanged"})->bytes, stored) << channels;
  }
  const Picture grey = MakePicture(5, 4, 1, 1);
  const auto rgb = Decode(EncodePng(grey));
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    EXPECT_EQ(rgb->bytes.substr(3 * i, 3), std::string(3, static_cast<char>(grey.pixels[i])));
  }
}

std::vector<std::string> OneOfEach() {
  const Picture picture = MakePicture(20, 12, 3, 1);
  return {EncodeJpeg(picture), EncodeJpeg(picture, {.progressive = true}), EncodePng(picture),
          EncodeWebp(picture)};
}

TEST(DecodeImage, four_inks_are_inverted_always_or_as_the_marker_says) {
  const Picture picture = MakePicture(16, 8, 4, 1);
  const std::string marked = EncodeJpeg(picture, {.quality = 100});
  // Without its Adobe marker, a segment of 16 bytes.
  const size_t marker = marked.find("\xFF\xEE");
  ASSERT_NE(marker, std::string::npos);
  const std::string bare = marked.substr(0, marker) + marked.substr(marker + 16);
  EXPECT_EQ(*Decode(marked), *Decode(bare));
  const auto by_marker = Decode(marked, {.cmyk = "marker"});
  const auto inverted = Decode(marked);
  const auto plain = Decode(bare, {.cmyk = "marker"});
  ASSERT_TRUE(by_marker.ok() && inverted.ok() && plain.ok());
  EXPECT_NE(plain->bytes, inverted->bytes);
  EXPECT_NE(by_marker->bytes, inverted->bytes);
  for (size_t i = 0; i < inverted->bytes.size(); ++i) {
    const auto value = [&](const Pixels& pixels) {
      return static_cast<int>(static_cast<uint8_t>(pixels.bytes[i]));
    };
    EXPECT_LE(std::abs(value(*by_marker) - value(*inverted)), 1);  // rounding
  }
}

TEST(DecodeImage, every_beginning_of_a_file_is_refused) {
  ImageDecoder decoder;
  // IEND and two checksums: as in PIL, a PNG's pixels are whole without them.
  constexpr size_t kEnd = 12 + 4 + 4;
  for (const std::string& file : OneOfEach()) {
    const auto whole = DecodeWith(&decoder, file, {});
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    for (size_t size = 0; size < file.size(); ++size) {
      const auto pixels = DecodeWith(&decoder, file.substr(0, size), {});
      if (pixels.ok()) {
        EXPECT_GE(size + kEnd, file.size());
        EXPECT_EQ(*pixels, *whole);
      } else {
        EXPECT_EQ(pixels.code(), Code::kDataLoss) << size;
      }
    }
    EXPECT_EQ(*DecodeWith(&decoder, file, {}), *whole);  // as good as new
  }
}

TEST(DecodeImage, a_cut_beyond_the_wanted_part_is_refused_all_the_same) {
  const std::string file = EncodeJpeg(MakePicture(64, 200, 3, 1));
  ImageDecoder decoder;
  const Rect top = {0, 0, 64, 8};
  EXPECT_TRUE(DecodeWith(&decoder, file, {}, &top).ok());
  EXPECT_EQ(DecodeWith(&decoder, file.substr(0, file.size() - 2), {}, &top).code(),
            Code::kDataLoss);
  EXPECT_TRUE(DecodeWith(&decoder, file + "junk after the end", {}, &top).ok());
}

TEST(DecodeImage, changed_bytes_are_survived) {
  ImageDecoder decoder;
  Random random(3);
  const DecodeImageOp small{.pixels_max = 4096};
  uint64_t damaged = 0;
  for (const std::string& file : OneOfEach()) {
    for (size_t at = 0; at < file.size(); ++at) {
      std::string changed = file;
      changed[at] = static_cast<char>(random.NextBelow(256));
      const auto pixels = DecodeWith(&decoder, changed, small);
      EXPECT_TRUE(pixels.ok() || pixels.code() == Code::kDataLoss);
      damaged += pixels.ok() && decoder.damaged() ? 1 : 0;
    }
  }
  EXPECT_GT(damaged, 0U);  // JPEGs that PIL decodes without a word
}

// The size in the frame's header, and nothing else.
std::string WithJpegSize(std::string file, int width, int height) {
  for (const char* marker : {"\xFF\xC0", "\xFF\xC2"}) {
    const size_t frame = file.find(marker);
    if (frame == std::string::npos) continue;
    for (const auto& [at, value] : {std::pair{frame + 5, height}, {frame + 7, width}}) {
      file[at] = static_cast<char>(value >> 8);
      file[at + 1] = static_cast<char>(value & 0xFF);
    }
  }
  return file;
}

TEST(DecodeImage, sizes_are_checked_before_memory_is_taken) {
  const Picture picture = MakePicture(20, 12, 3, 1);
  for (const bool progressive : {false, true}) {
    const std::string file = EncodeJpeg(picture, {.progressive = progressive});
    EXPECT_EQ(Decode(file, {.pixels_max = 239}).code(), Code::kDataLoss);
    EXPECT_TRUE(Decode(file, {.pixels_max = 240}).ok());
    for (const auto& [width, height] :
         {std::pair{65500, 65500}, {65500, 1000}, {5000, 5000}, {13000, 13000}, {0, 12}, {20, 0}}) {
      const auto pixels = Decode(WithJpegSize(file, width, height));
      EXPECT_EQ(pixels.code(), Code::kDataLoss) << width << " x " << height;
    }
  }
  EXPECT_EQ(Decode(EncodePng(picture), {.pixels_max = 239}).code(), Code::kDataLoss);
  EXPECT_EQ(Decode(EncodeWebp(picture), {.pixels_max = 239}).code(), Code::kDataLoss);
}

TEST(DecodeImage, a_jpeg_of_very_many_scans_is_refused) {
  const std::string file = EncodeJpeg(MakePicture(16, 16, 3, 1), {.progressive = true});
  // The last scan over and over: it refines nothing more, but every one has to be read.
  const size_t last = file.rfind("\xFF\xDA");
  const std::string scan = file.substr(last, file.size() - 2 - last);
  const auto with = [&](int times) {
    std::string many = file.substr(0, last);
    for (int i = 0; i < times; ++i) many += scan;
    return Decode(many + "\xFF\xD9");
  };
  EXPECT_TRUE(with(100).ok());
  const auto refused = with(600);
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_NE(refused.status().ToString().find("500 scans"), std::string::npos)
      << refused.status().ToString();
}

TEST(DecodeImage, what_is_no_image_is_told_by_its_first_bytes) {
  const auto page = Decode("<?xml version=\"1.0\"?><Error>SlowDown</Error>");
  EXPECT_EQ(page.code(), Code::kDataLoss);
  EXPECT_NE(page.status().ToString().find("3c 3f 78 6d"), std::string::npos);
  EXPECT_EQ(Decode("").code(), Code::kDataLoss);
}

std::string WithOrientation(const std::string& jpeg, const std::string& tiff) {
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  const size_t length = body.size() + 2;
  return jpeg.substr(0, 2) + "\xFF\xE1" + static_cast<char>(length >> 8) +
         static_cast<char>(length & 0xFF) + body + jpeg.substr(2);
}

TEST(Orientation, is_read_in_either_byte_order_and_never_beyond_its_block) {
  const std::string little("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
  const std::string big("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  for (const std::string& tiff : {little, big}) {
    EXPECT_TRUE(OrientationOf(AsBytes(tiff)).swap_axes);
    for (size_t size = 0; size < 20; ++size) {
      EXPECT_TRUE(OrientationOf(AsBytes(tiff).first(size)).plain()) << size;
    }
    for (size_t at = 4; at < tiff.size(); ++at) {
      std::string changed = tiff;
      changed[at] = '\xFF';
      (void)OrientationOf(AsBytes(changed));
    }
  }
  const std::string file = EncodeJpeg(MakePicture(20, 12, 3, 1));
  const std::string turned = WithOrientation(file, little);
  EXPECT_EQ(Decode(turned)->size, (Size{20, 12}));
  EXPECT_EQ(Decode(turned, {.orientation = "apply"})->size, (Size{12, 20}));
  EXPECT_EQ(Decode(file, {.orientation = "apply"})->size, (Size{20, 12}));
}

TEST(Orientation, turning_a_part_is_a_part_of_the_turned) {
  ImageDecoder decoder;
  const std::string file = EncodePng(MakePicture(9, 6, 3, 1));
  const auto plain = *DecodeWith(&decoder, file, {});
  const ImageView view = {.data = reinterpret_cast<const uint8_t*>(plain.bytes.data()),
                          .stride = 27,
                          .width = 9,
                          .height = 6,
                          .channels = 3};
  for (int i = 0; i < 8; ++i) {
    const Orientation turn = {(i & 4) != 0, (i & 2) != 0, (i & 1) != 0};
    Image whole, part;
    const Pixels turned = Copy(turn.Turn(view, &whole));
    EXPECT_EQ(turned.size, turn.Turned(view.size()));
    const Rect region = {1, 2, 3, 4};
    EXPECT_EQ(Copy(turn.Turn(view.Cropped(turn.Stored(region, view.size())), &part)),
              Cut(turned, region));
  }
}

}  // namespace
}  // namespace forebay::ops
