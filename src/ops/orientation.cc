#include "ops/orientation.h"

#include <cstring>
#include <utility>

namespace forebay::ops {
namespace {

constexpr std::string_view kExif("Exif\0\0", 6);

// Numbers of a TIFF block, in its byte order; 0 beyond its end.
class Tiff {
 public:
  Tiff(ByteView bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  uint32_t Number(uint64_t at, size_t size) const {
    if (at + size > bytes_.size()) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t shift = 8 * (big_endian_ ? size - 1 - i : i);
      value |= std::to_integer<uint32_t>(bytes_[at + i]) << shift;
    }
    return value;
  }

 private:
  ByteView bytes_;
  bool big_endian_;
};

uint32_t TagOf(ByteView exif) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  constexpr uint64_t kEntry = 12;
  if (AsText(exif).starts_with(kExif)) exif = exif.subspan(kExif.size());
  const bool big = AsText(exif).starts_with(std::string_view("MM\0*", 4));
  if (!big && !AsText(exif).starts_with(std::string_view("II*\0", 4))) return 0;
  const Tiff tiff(exif, big);
  const uint64_t directory = tiff.Number(4, 4);
  const uint32_t entries = tiff.Number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + i * kEntry;
    if (tiff.Number(at, 2) != kOrientation) continue;
    return tiff.Number(at + 2, 2) == kShort ? tiff.Number(at + 8, 2) : 0;
  }
  return 0;
}

}  // namespace

Orientation OrientationOf(ByteView exif) {
  switch (TagOf(exif)) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, false, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, true, false};
    default:
      return {};
  }
}

Rect Orientation::Stored(const Rect& region, const Size& stored) const {
  Rect rect = region;
  if (swap_axes) rect = {region.y, region.x, region.height, region.width};
  if (flip_x) rect.x = stored.width - rect.x - rect.width;
  if (flip_y) rect.y = stored.height - rect.y - rect.height;
  return rect;
}

ImageView Orientation::Turn(const ImageView& pixels, Image* into) const {
  const Size size = Turned(pixels.size());
  const auto channels = static_cast<size_t>(pixels.channels);
  into->Reset(size.width, size.height, pixels.channels);
  for (int64_t y = 0; y < size.height; ++y) {
    uint8_t* to = into->Row(y);
    for (int64_t x = 0; x < size.width; ++x, to += channels) {
      const int64_t u = swap_axes ? y : x;
      const int64_t v = swap_axes ? x : y;
      const int64_t from_x = flip_x ? pixels.width - 1 - u : u;
      const int64_t from_y = flip_y ? pixels.height - 1 - v : v;
      std::memcpy(to, pixels.Row(from_y) + static_cast<size_t>(from_x) * channels, channels);
    }
  }
  return into->view();
}

// Segments of a marker and a length that counts itself, until the first scan.
ByteView ExifOfJpeg(ByteView file) {
  constexpr std::byte kMarker{0xFF}, kApp1{0xE1}, kScan{0xDA};
  size_t at = 2;
  while (at + 4 <= file.size() && file[at] == kMarker) {
    if (file[at + 1] == kMarker) {  // fill
      ++at;
      continue;
    }
    if (file[at + 1] == kScan) return {};
    const size_t length =
        std::to_integer<size_t>(file[at + 2]) << 8 | std::to_integer<size_t>(file[at + 3]);
    if (length < 2 || length > file.size() - at - 2) return {};
    const ByteView segment = file.subspan(at + 4, length - 2);
    if (file[at + 1] == kApp1 && AsText(segment).starts_with(kExif)) return segment;
    at += 2 + length;
  }
  return {};
}

}  // namespace forebay::ops
