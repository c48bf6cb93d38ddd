#include "ops/decode_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "ops/color.h"

namespace forebay::ops {
namespace {

bool IsJpeg(ByteView file) { return AsText(file).starts_with("\xFF\xD8\xFF"); }

// The start of what is no image, for the error's text.
std::string Start(ByteView file) {
  std::string text;
  for (const std::byte b : file.first(std::min<size_t>(file.size(), 8))) {
    text += fmt::format("{:02x} ", static_cast<unsigned>(b));
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

Result<Size> ImageDecoder::Open(ByteView file, const DecodeImageOp& op) {
  op_ = &op;
  if (!IsJpeg(file)) {
    return Status(Code::kDataLoss,
                  fmt::format("no JPEG, PNG or WebP: {} bytes that begin with [{}]", file.size(),
                              Start(file)));
  }
  FB_ASSIGN_OR_RETURN(const JpegDecoder::Info info, jpeg_.Open(file, op.pixels_max));
  return info.size;
}

Result<ImageView> ImageDecoder::Decode(const Rect& region) {
  FB_ASSIGN_OR_RETURN(const ImageView pixels, jpeg_.Decode(region));
  return InMode(pixels);
}

bool ImageDecoder::damaged() const { return jpeg_.damaged(); }

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
