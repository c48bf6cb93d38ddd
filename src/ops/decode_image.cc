#include "ops/decode_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "ops/color.h"

namespace forebay::ops {
namespace {

// The start of what is no image, for the error's text.
std::string Start(ByteView file) {
  std::string text;
  for (const std::byte b : file.first(std::min<size_t>(file.size(), 8))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", static_cast<unsigned>(b));
  }
  return text;
}

}  // namespace

Result<Size> ImageDecoder::Open(ByteView file, const DecodeImageOp& op) {
  op_ = &op;
  FB_ASSIGN_OR_RETURN(stored_, OpenStored(file));
  orientation_ = op.orientation == "apply" ? OrientationOf(Exif(file)) : Orientation();
  return orientation_.Turned(stored_);
}

Result<Size> ImageDecoder::OpenStored(ByteView file) {
  const std::string_view text = AsText(file);
  if (text.starts_with("\xFF\xD8\xFF")) {
    kind_ = Kind::kJpeg;
    FB_ASSIGN_OR_RETURN(const JpegDecoder::Info info, jpeg_.Open(file, op_->pixels_max));
    return info.size;
  }
  if (text.starts_with("\x89PNG\r\n\x1A\n")) {
    kind_ = Kind::kPng;
    return png_.Open(file, op_->pixels_max);
  }
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) {
    kind_ = Kind::kWebp;
    return webp_.Open(file, op_->pixels_max);
  }
  kind_ = Kind::kNone;
  return Status(Code::kDataLoss, fmt::format("no JPEG, PNG or WebP: {} bytes that begin with [{}]",
                                             file.size(), Start(file)));
}

ByteView ImageDecoder::Exif(ByteView file) {
  switch (kind_) {
    case Kind::kJpeg:
      return ExifOfJpeg(file);
    case Kind::kPng:
      return png_.exif();
    default:
      return webp_.exif();
  }
}

Result<ImageView> ImageDecoder::Decode(const Rect& region) {
  FB_ASSIGN_OR_RETURN(const ImageView pixels, DecodeStored(orientation_.Stored(region, stored_)));
  const ImageView in_mode = InMode(pixels);
  return orientation_.plain() ? in_mode : orientation_.Turn(in_mode, &turned_);
}

Result<ImageView> ImageDecoder::DecodeStored(const Rect& region) {
  if (kind_ == Kind::kJpeg) {
    return jpeg_.Decode(region, op_->cmyk == "marker" ? JpegDecoder::Cmyk::kByMarker
                                                      : JpegDecoder::Cmyk::kInverted);
  }
  const bool as_stored = op_->mode == "unchanged";
  FB_ASSIGN_OR_RETURN(const ImageView all,
                      kind_ == Kind::kPng ? png_.Decode({as_stored, op_->grey16 == "high_byte"})
                                          : webp_.Decode(as_stored));
  return all.Cropped(region);
}

ImageView ImageDecoder::InMode(const ImageView& pixels) {
  const int wanted = op_->mode == "L" ? 1 : op_->mode == "RGB" ? 3 : pixels.channels;
  if (wanted == pixels.channels) return pixels;
  converted_.Reset(pixels.width, pixels.height, wanted);
  for (int64_t y = 0; y < pixels.height; ++y) {
    const uint8_t* from = pixels.Row(y);
    uint8_t* to = converted_.Row(y);
    if (wanted == 3) {
      for (int64_t x = 0; x < pixels.width; ++x, to += 3) to[0] = to[1] = to[2] = from[x];
    } else {
      RgbToGrey(from, pixels.width, to);
    }
  }
  return converted_.view();
}

}  // namespace forebay::ops
