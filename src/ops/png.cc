#include "ops/png.h"

#include <fmt/core.h>
#include <spng.h>

#include <algorithm>
#include <cstring>

#include "ops/bomb.h"

namespace forebay::ops {
namespace {

struct Free {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

Status Damaged(int error) {
  return Status(Code::kDataLoss, fmt::format("a damaged PNG: {}", spng_strerror(error)));
}

int StoredChannels(const spng_ihdr& header) {
  switch (header.color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
      return 1;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
      return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

struct PngDecoder::State {
  std::unique_ptr<spng_ctx, Free> context;
  spng_ihdr header = {};
  Image pixels;
  Image stored;

  Result<ImageView> DecodeAs(int format, int channels, int bytes, Image* into) {
    into->Reset(header.width, header.height, channels * bytes);
    size_t size = 0;
    if (const int error = spng_decoded_image_size(context.get(), format, &size); error != 0) {
      return Damaged(error);
    }
    if (size != into->view().stride * static_cast<size_t>(header.height)) {
      return Status(Code::kDataLoss, "a PNG of a layout that is not understood");
    }
    if (const int error = spng_decode_image(context.get(), into->Row(0), size, format, 0);
        error != 0) {
      return Damaged(error);
    }
    return into->view();
  }

  // Of 16-bit values, in the machine's order, the high byte or what is left below 256.
  Result<ImageView> DecodeWide(int channels, bool cut_off) {
    FB_ASSIGN_OR_RETURN(const ImageView wide,
                        DecodeAs(SPNG_FMT_PNG, channels, sizeof(uint16_t), &stored));
    pixels.Reset(header.width, header.height, channels);
    for (int64_t y = 0; y < wide.height; ++y) {
      const uint8_t* from = wide.Row(y);
      uint8_t* to = pixels.Row(y);
      for (size_t x = 0; x < pixels.view().stride; ++x) {
        uint16_t value = 0;
        std::memcpy(&value, from + x * sizeof(value), sizeof(value));
        to[x] = static_cast<uint8_t>(cut_off ? std::min<uint16_t>(value, 255) : value >> 8);
      }
    }
    return pixels.view();
  }
};

PngDecoder::PngDecoder() : state_(std::make_unique<State>()) {}
PngDecoder::~PngDecoder() = default;

Result<Size> PngDecoder::Open(ByteView data, uint64_t pixels_max) {
  constexpr size_t kChunkMost = size_t{16} << 20;   // of those that are not pixels
  constexpr size_t kChunksMost = size_t{64} << 20;  // of them together, unpacked
  State& state = *state_;
  state.context.reset(spng_ctx_new(0));
  if (state.context == nullptr) return Status(Code::kResourceExhausted, "no memory for a PNG");
  spng_ctx* context = state.context.get();
  spng_set_crc_action(context, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
  spng_set_chunk_limits(context, kChunkMost, kChunksMost);
  if (const int error = spng_set_png_buffer(context, data.data(), data.size()); error != 0) {
    return Damaged(error);
  }
  if (const int error = spng_get_ihdr(context, &state.header); error != 0) return Damaged(error);
  const Size size = {state.header.width, state.header.height};
  const int samples =
      state.header.color_type == SPNG_COLOR_TYPE_INDEXED ? 1 : StoredChannels(state.header);
  FB_RETURN_IF_ERROR(CheckBomb(size, samples * state.header.bit_depth, data.size(), pixels_max));
  return size;
}

ByteView PngDecoder::exif() {
  spng_exif exif = {};
  if (spng_get_exif(state_->context.get(), &exif) != 0) return {};
  return {reinterpret_cast<const std::byte*>(exif.data), exif.length};
}

Result<ImageView> PngDecoder::Decode(const Wanted& wanted) {
  const bool as_stored = wanted.as_stored;
  State& state = *state_;
  const bool wide = state.header.bit_depth == 16;
  if (state.header.color_type == SPNG_COLOR_TYPE_GRAYSCALE) {
    return wide ? state.DecodeWide(1, !wanted.grey_high_byte)
                : state.DecodeAs(SPNG_FMT_G8, 1, 1, &state.pixels);
  }
  if (as_stored && state.header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA) {
    return wide ? state.DecodeWide(2, false) : state.DecodeAs(SPNG_FMT_PNG, 2, 1, &state.pixels);
  }
  if (as_stored && state.header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA) {
    return state.DecodeAs(SPNG_FMT_RGBA8, 4, 1, &state.pixels);
  }
  return state.DecodeAs(SPNG_FMT_RGB8, 3, 1, &state.pixels);
}

}  // namespace forebay::ops
