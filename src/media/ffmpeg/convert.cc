#include "media/ffmpeg/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "media/ffmpeg/yuv_to_rgb.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr size_t kScalersMax = 16;
constexpr int kScaleFlags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT;

// The full-range twins are spelled as the plain format plus a range.
AVPixelFormat WithoutRange(AVPixelFormat format, bool& full) {
  switch (format) {
    case AV_PIX_FMT_YUVJ411P:
      full = true;
      return AV_PIX_FMT_YUV411P;
    case AV_PIX_FMT_YUVJ420P:
      full = true;
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      full = true;
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ440P:
      full = true;
      return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ444P:
      full = true;
      return AV_PIX_FMT_YUV444P;
    default:
      return format;
  }
}

bool IsRgb(AVPixelFormat format) {
  const AVPixFmtDescriptor* d = av_pix_fmt_desc_get(format);
  return d != nullptr && (d->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0;
}

// swscale's number of a matrix; -1: it has none.
int MatrixOf(int color_space) {
  switch (color_space) {
    case AVCOL_SPC_BT709:
      return SWS_CS_ITU709;
    case AVCOL_SPC_FCC:
      return SWS_CS_FCC;
    case AVCOL_SPC_SMPTE240M:
      return SWS_CS_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL:
      return SWS_CS_BT2020;
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RESERVED:
    case AVCOL_SPC_RGB:  // a wrong tag on a YUV picture
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return SWS_CS_ITU601;
    default:
      return -1;
  }
}

// The weights of red and blue in luma, of swscale's matrix number.
YuvCoefficients CoefficientsOf(int matrix, bool full_range) {
  switch (matrix) {
    case SWS_CS_ITU709:
      return MakeYuvCoefficients(0.2126, 0.0722, full_range);
    case SWS_CS_FCC:
      return MakeYuvCoefficients(0.30, 0.11, full_range);
    case SWS_CS_SMPTE240M:
      return MakeYuvCoefficients(0.212, 0.087, full_range);
    case SWS_CS_BT2020:
      return MakeYuvCoefficients(0.2627, 0.0593, full_range);
    default:
      return MakeYuvCoefficients(0.299, 0.114, full_range);
  }
}

// Whether a format is 8-bit planar YUV, and how its chroma is sampled.
bool PlanarShifts(AVPixelFormat format, int& x_shift, int& y_shift) {
  x_shift = format == AV_PIX_FMT_YUV444P ? 0 : 1;
  y_shift = format == AV_PIX_FMT_YUV420P ? 1 : 0;
  return format == AV_PIX_FMT_YUV420P || format == AV_PIX_FMT_YUV422P ||
         format == AV_PIX_FMT_YUV444P;
}

// Where the upright picture's pixel (x, y) lies in the decoded one: start + x * dx + y * dy bytes.
struct Walk {
  ptrdiff_t start = 0, dx = 3, dy = 0;
};

Walk UprightWalk(int width, int height, ptrdiff_t stride, int32_t rotation, bool flip) {
  Walk walk;
  int32_t upright_width = width;
  switch (rotation) {
    case 90:
      walk = {(height - 1) * stride, -stride, 3};
      upright_width = height;
      break;
    case 180:
      walk = {(height - 1) * stride + (width - 1) * 3, -3, -stride};
      break;
    case 270:
      walk = {(width - 1) * ptrdiff_t{3}, stride, -3};
      upright_width = height;
      break;
    default:
      walk = {0, 3, stride};
      break;
  }
  if (flip) {
    walk.start += (upright_width - 1) * walk.dx;
    walk.dx = -walk.dx;
  }
  return walk;
}

void Store(const uint8_t* from, const Walk& walk, DisplaySize size, PixelLayout layout,
           uint8_t* to) {
  const size_t pixels = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  for (int32_t y = 0; y < size.height; ++y) {
    const uint8_t* row = from + walk.start + y * walk.dy;
    const size_t first = static_cast<size_t>(y) * static_cast<size_t>(size.width);
    if (layout == PixelLayout::kHwc) {
      uint8_t* out = to + first * 3;
      if (walk.dx == 3) {
        std::memcpy(out, row, static_cast<size_t>(size.width) * 3);
        continue;
      }
      for (int32_t x = 0; x < size.width; ++x, row += walk.dx, out += 3) {
        out[0] = row[0];
        out[1] = row[1];
        out[2] = row[2];
      }
      continue;
    }
    uint8_t* out = to + first;
    for (int32_t x = 0; x < size.width; ++x, row += walk.dx, ++out) {
      out[0] = row[0];
      out[pixels] = row[1];
      out[2 * pixels] = row[2];
    }
  }
}

DisplaySize OutputSize(const StreamParameters& parameters, const OutputFormat& format) {
  const DisplaySize natural = DisplaySizeOf(parameters);
  return {format.width > 0 ? format.width : natural.width,
          format.height > 0 ? format.height : natural.height};
}

}  // namespace

Result<NativeFrame> PackNative(const AVFrame& frame, uint32_t number) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const char* name = av_get_pix_fmt_name(format);
  const int size = av_image_get_buffer_size(format, frame.width, frame.height, 1);
  if (name == nullptr || size < 0) {
    return Status(Code::kUnimplemented,
                  fmt::format("pixel format {} cannot be packed", frame.format));
  }
  NativeFrame native{.frame = number,
                     .width = frame.width,
                     .height = frame.height,
                     .pixel_format = name,
                     .bytes = std::vector<std::byte>(static_cast<size_t>(size))};
  const int copied =
      av_image_copy_to_buffer(reinterpret_cast<uint8_t*>(native.bytes.data()), size, frame.data,
                              frame.linesize, format, frame.width, frame.height, 1);
  if (copied != size) return Status(Code::kInternal, "a frame's planes do not fill its buffer");
  return native;
}

uint64_t RgbConverter::FrameBytes(const StreamParameters& parameters, const OutputFormat& format) {
  const DisplaySize size = OutputSize(parameters, format);
  return uint64_t{3} * static_cast<uint32_t>(size.width) * static_cast<uint32_t>(size.height);
}

Result<SwsContext*> RgbConverter::ScalerFor(const Shape& shape) {
  const auto found = std::ranges::find(scalers_, shape, &Scaler::shape);
  if (found != scalers_.end()) {
    std::rotate(found, found + 1, scalers_.end());
    return scalers_.back().context.get();
  }
  const auto format = static_cast<AVPixelFormat>(shape.pixel_format);
  AvPtr<SwsContext> context(sws_getContext(shape.width, shape.height, format, shape.to_width,
                                           shape.to_height, AV_PIX_FMT_RGB24, kScaleFlags, nullptr,
                                           nullptr, nullptr));
  if (context == nullptr) {
    const char* name = av_get_pix_fmt_name(format);
    return Status(Code::kUnimplemented, fmt::format("no conversion from {} {}x{} to RGB {}x{}",
                                                    name != nullptr ? name : "?", shape.width,
                                                    shape.height, shape.to_width, shape.to_height));
  }
  const int* coefficients = sws_getCoefficients(shape.matrix);
  // Formats without chroma refuse this, and need none of it.
  (void)sws_setColorspaceDetails(context.get(), coefficients, shape.full_range, coefficients, 1, 0,
                                 1 << 16, 1 << 16);
  if (scalers_.size() >= kScalersMax) scalers_.erase(scalers_.begin());
  scalers_.push_back({shape, std::move(context)});
  return scalers_.back().context.get();
}

Status RgbConverter::Convert(const AVFrame& frame, const StreamParameters& parameters,
                             const OutputFormat& format, MutableBytes output) {
  const bool sized = format.width > 0 && format.height > 0;
  if (!sized && (frame.width != parameters.width || frame.height != parameters.height)) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("the picture is {}x{} where the stream is {}x{}: ask for an output size",
                    frame.width, frame.height, parameters.width, parameters.height));
  }
  const DisplaySize size = OutputSize(parameters, format);
  const bool turned = parameters.rotation % 180 != 0;
  bool full =
      frame.color_range == AVCOL_RANGE_JPEG ||
      (frame.color_range == AVCOL_RANGE_UNSPECIFIED && parameters.color_range == AVCOL_RANGE_JPEG);
  const AVPixelFormat plain = WithoutRange(static_cast<AVPixelFormat>(frame.format), full);
  const int space =
      frame.colorspace != AVCOL_SPC_UNSPECIFIED ? frame.colorspace : parameters.color_space;
  const int matrix = IsRgb(plain) ? SWS_CS_ITU601 : MatrixOf(space);
  if (matrix < 0) {
    const char* name = av_color_space_name(static_cast<AVColorSpace>(space));
    return Status(Code::kUnimplemented,
                  fmt::format("no conversion from colour matrix {} to RGB", name ? name : "?"));
  }
  const Shape shape{.width = frame.width,
                    .height = frame.height,
                    .pixel_format = plain,
                    .full_range = full || IsRgb(plain) ? 1 : 0,
                    .matrix = matrix,
                    .to_width = turned ? size.height : size.width,
                    .to_height = turned ? size.width : size.height};
  const bool same_size = shape.to_width == shape.width && shape.to_height == shape.height;
  int x_shift = 0, y_shift = 0;
  if (same_size && PlanarShifts(plain, x_shift, y_shift)) {
    ConvertPlanar(frame, shape, parameters, format, output);
    return {};
  }
  return ConvertScaled(frame, shape, parameters, format, output);
}

void RgbConverter::ConvertPlanar(const AVFrame& frame, const Shape& shape,
                                 const StreamParameters& parameters, const OutputFormat& format,
                                 MutableBytes output) {
  int x_shift = 0, y_shift = 0;
  PlanarShifts(static_cast<AVPixelFormat>(shape.pixel_format), x_shift, y_shift);
  const YuvCoefficients coefficients = CoefficientsOf(shape.matrix, shape.full_range != 0);
  const bool upright = parameters.rotation == 0 && !parameters.flip;
  const bool planes = upright && format.layout == PixelLayout::kChw;
  const auto width = static_cast<size_t>(shape.width), height = static_cast<size_t>(shape.height);
  if (!upright) scratch_.resize(width * height * 3);
  auto* const to = upright ? reinterpret_cast<uint8_t*>(output.data()) : scratch_.data();
  for (int y = 0; y < shape.height; ++y) {
    const YuvRow from{.y = frame.data[0] + ptrdiff_t{y} * frame.linesize[0],
                      .u = frame.data[1] + ptrdiff_t{y >> y_shift} * frame.linesize[1],
                      .v = frame.data[2] + ptrdiff_t{y >> y_shift} * frame.linesize[2],
                      .chroma_shift = x_shift};
    const size_t first = static_cast<size_t>(y) * width;
    RgbRow row{.r = to + first * 3, .g = to + first * 3 + 1, .b = to + first * 3 + 2, .step = 3};
    if (planes) {
      row = {.r = to + first,
             .g = to + first + width * height,
             .b = to + first + 2 * width * height,
             .step = 1};
    }
    YuvToRgb(from, coefficients, shape.width, row);
  }
  if (upright) return;
  const auto stride = static_cast<ptrdiff_t>(width * 3);
  Store(scratch_.data(),
        UprightWalk(shape.width, shape.height, stride, parameters.rotation, parameters.flip),
        OutputSize(parameters, format), format.layout, reinterpret_cast<uint8_t*>(output.data()));
}

Status RgbConverter::ConvertScaled(const AVFrame& frame, const Shape& shape,
                                   const StreamParameters& parameters, const OutputFormat& format,
                                   MutableBytes output) {
  FB_ASSIGN_OR_RETURN(SwsContext * context, ScalerFor(shape));
  // swscale writes past a row's end up to its vector width: into scratch, never into the output.
  const int stride = (shape.to_width * 3 + 127) / 64 * 64;
  scratch_.resize(static_cast<size_t>(stride) * static_cast<size_t>(shape.to_height) + 64);
  uint8_t* planes[4] = {scratch_.data(), nullptr, nullptr, nullptr};
  const int strides[4] = {stride, 0, 0, 0};
  const int rows = sws_scale(context, frame.data, frame.linesize, 0, frame.height, planes, strides);
  if (rows != shape.to_height) return Status(Code::kInternal, "swscale gave too few rows");
  Store(scratch_.data(),
        UprightWalk(shape.to_width, shape.to_height, stride, parameters.rotation, parameters.flip),
        OutputSize(parameters, format), format.layout, reinterpret_cast<uint8_t*>(output.data()));
  return {};
}

}  // namespace forebay::media::ffmpeg
