#include "media/ffmpeg/codec.h"

#include <fmt/core.h>

#include <cstring>

namespace forebay::media::ffmpeg {
namespace {

// More than any camera gives; a damaged header must not ask for all memory.
constexpr int64_t kPixelsMax = int64_t{1} << 28;

Status FillParameters(const StreamParameters& p, AVCodecParameters* out) {
  const AVCodecDescriptor* descriptor = avcodec_descriptor_get_by_name(p.codec.c_str());
  if (descriptor == nullptr || descriptor->type != AVMEDIA_TYPE_VIDEO) {
    return Status(Code::kUnimplemented, fmt::format("unknown video codec \"{}\"", p.codec));
  }
  out->codec_type = AVMEDIA_TYPE_VIDEO;
  out->codec_id = descriptor->id;
  out->codec_tag = p.codec_tag;
  out->width = p.width;
  out->height = p.height;
  out->format = av_get_pix_fmt(p.pixel_format.c_str());
  out->profile = p.profile;
  out->level = p.level;
  out->field_order = static_cast<AVFieldOrder>(p.field_order);
  out->color_range = static_cast<AVColorRange>(p.color_range);
  out->color_primaries = static_cast<AVColorPrimaries>(p.color_primaries);
  out->color_trc = static_cast<AVColorTransferCharacteristic>(p.color_transfer);
  out->color_space = static_cast<AVColorSpace>(p.color_space);
  out->chroma_location = static_cast<AVChromaLocation>(p.chroma_location);
  out->video_delay = p.video_delay;
  out->bits_per_raw_sample = p.bits_per_raw_sample;
  out->bits_per_coded_sample = p.bits_per_coded_sample;
  out->sample_aspect_ratio = ToAv(p.sample_aspect_ratio);
  if (!p.extradata.empty()) {
    out->extradata =
        static_cast<uint8_t*>(av_mallocz(p.extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (out->extradata == nullptr) return Status(Code::kResourceExhausted, "no memory");
    std::memcpy(out->extradata, p.extradata.data(), p.extradata.size());
    out->extradata_size = static_cast<int>(p.extradata.size());
  }
  return {};
}

}  // namespace

Result<AvPtr<AVCodecContext>> OpenCodec(const StreamParameters& parameters) {
  AvPtr<AVCodecParameters> av(avcodec_parameters_alloc());
  if (av == nullptr) return Status(Code::kResourceExhausted, "no memory");
  FB_RETURN_IF_ERROR(FillParameters(parameters, av.get()));
  const AVCodec* codec = avcodec_find_decoder(av->codec_id);
  if (codec == nullptr) {
    return Status(Code::kUnimplemented,
                  fmt::format("this FFmpeg has no decoder for {}", parameters.codec));
  }
  AvPtr<AVCodecContext> context(avcodec_alloc_context3(codec));
  if (context == nullptr) return Status(Code::kResourceExhausted, "no memory");
  int error = avcodec_parameters_to_context(context.get(), av.get());
  if (error >= 0) {
    context->thread_count = 1;
    context->pkt_timebase = AVRational{1, 1000};  // pts are tags, not times
    context->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    context->err_recognition = kStrict;
    context->max_pixels = kPixelsMax;
    error = avcodec_open2(context.get(), codec, nullptr);
  }
  if (error < 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("libavcodec does not open {} {}x{}: {}", parameters.codec,
                              parameters.width, parameters.height, AvErrorText(error)));
  }
  return context;
}

bool IsPalette(const std::string& set) { return set.starts_with(kPaletteMark); }

std::string PaletteSet(ByteView palette) {
  return std::string(kPaletteMark) + std::string(AsText(palette));
}

Status AttachParameterSet(const std::string& set, AVPacket* packet) {
  const bool palette = IsPalette(set);
  const std::string_view bytes = std::string_view(set).substr(palette ? kPaletteMark.size() : 0);
  if (bytes.empty()) return {};
  uint8_t* side = av_packet_new_side_data(
      packet, palette ? AV_PKT_DATA_PALETTE : AV_PKT_DATA_NEW_EXTRADATA, bytes.size());
  if (side == nullptr) return Status(Code::kResourceExhausted, "no memory");
  std::memcpy(side, bytes.data(), bytes.size());
  return {};
}

std::string CodecKey(const StreamParameters& p) {
  return fmt::format("{} {} {}x{} {} {} {} {} {} {} {} {} {} {} {} {} {}:", p.codec, p.codec_tag,
                     p.width, p.height, p.pixel_format, p.profile, p.level, p.field_order,
                     p.color_range, p.color_primaries, p.color_transfer, p.color_space,
                     p.chroma_location, p.video_delay, p.bits_per_raw_sample,
                     p.bits_per_coded_sample, p.extradata.size()) +
         p.extradata;
}

}  // namespace forebay::media::ffmpeg
