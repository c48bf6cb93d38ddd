#include "ops/webp.h"

#include <fmt/core.h>
#include <webp/decode.h>

#include <cstring>

#include "ops/bomb.h"

namespace forebay::ops {
namespace {

const uint8_t* Raw(ByteView data) { return reinterpret_cast<const uint8_t*>(data.data()); }

Status Damaged(int code) {
  return Status(Code::kDataLoss, code == VP8_STATUS_NOT_ENOUGH_DATA
                                     ? "the WebP data is cut short"
                                     : fmt::format("a damaged WebP (libwebp's status {})", code));
}

}  // namespace

Result<Size> WebpDecoder::Open(ByteView data, uint64_t pixels_max) {
  data_ = data;
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(Raw(data), data.size(), &features);
  if (code != VP8_STATUS_OK) return Damaged(code);
  if (features.has_animation != 0) return Status(Code::kDataLoss, "an animated WebP");
  size_ = {features.width, features.height};
  has_alpha_ = features.has_alpha != 0;
  FB_RETURN_IF_ERROR(CheckBomb(size_, 24, data.size(), pixels_max));
  return size_;
}

// RIFF: after the head of 12 bytes, chunks of a name, a size and data filled up to an even length.
ByteView WebpDecoder::exif() const {
  constexpr size_t kHead = 12, kChunkHead = 8;
  for (size_t at = kHead; at + kChunkHead <= data_.size();) {
    uint32_t size = 0;
    std::memcpy(&size, data_.data() + at + 4, sizeof(size));
    const ByteView chunk = data_.subspan(at + kChunkHead);
    if (size > chunk.size()) return {};
    if (AsText(data_.subspan(at, 4)) == "EXIF") return chunk.first(size);
    at += kChunkHead + size + (size & 1);
  }
  return {};
}

Result<ImageView> WebpDecoder::Decode(bool as_stored) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return Status(Code::kInternal, "another libwebp");
  const int channels = as_stored && has_alpha_ ? 4 : 3;
  pixels_.Reset(size_.width, size_.height, channels);
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels_.Row(0);
  config.output.u.RGBA.stride = static_cast<int>(pixels_.view().stride);
  config.output.u.RGBA.size = pixels_.view().stride * static_cast<size_t>(size_.height);
  const VP8StatusCode code = WebPDecode(Raw(data_), data_.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (code != VP8_STATUS_OK) return Damaged(code);
  return pixels_.view();
}

}  // namespace forebay::ops
