#include "media/ffmpeg/scan_stream.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
}

#include <fmt/core.h>

#include <cmath>

namespace forebay::media::ffmpeg {
namespace {

Rational From(AVRational r) { return {r.num, r.den}; }

// Side data of a whole stream; its place moved in libavformat 60.
const uint8_t* SideData(const AVStream* stream, AVPacketSideDataType type, size_t* size) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
  const AVPacketSideData* data = av_packet_side_data_get(
      stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, type);
  *size = data != nullptr ? data->size : 0;
  return data != nullptr ? data->data : nullptr;
#else
  return av_stream_get_side_data(stream, type, size);
#endif
}

}  // namespace

std::vector<unsigned> VideoStreams(const AVFormatContext* context) {
  std::vector<unsigned> streams;
  for (unsigned i = 0; i < context->nb_streams; ++i) {
    const AVStream* stream = context->streams[i];
    if (stream->codecpar->codec_type != AVMEDIA_TYPE_VIDEO) continue;
    if ((stream->disposition & (AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS)) !=
        0) {
      continue;
    }
    streams.push_back(i);
  }
  return streams;
}

void SetRotation(const int32_t* matrix, StreamParameters* parameters) {
  const bool mirrored =
      static_cast<double>(matrix[0]) * matrix[4] - static_cast<double>(matrix[1]) * matrix[3] < 0;
  int32_t upright[9];
  std::memcpy(upright, matrix, sizeof upright);
  // A mirrored matrix is a turn followed by a horizontal flip: take the flip off first.
  if (mirrored) av_display_matrix_flip(upright, 1, 0);
  const double degrees = -av_display_rotation_get(upright);  // clockwise
  if (std::isnan(degrees)) return;
  const int quarter = static_cast<int>(std::lround(degrees / 90));
  parameters->rotation = ((quarter % 4) + 4) % 4 * 90;
  parameters->flip = mirrored;
}

StreamParameters ParametersOf(const AVStream* stream) {
  const AVCodecParameters* from = stream->codecpar;
  StreamParameters to;
  to.codec = avcodec_get_name(from->codec_id);
  to.codec_tag = from->codec_tag;
  if (from->extradata_size > 0) {
    to.extradata.assign(reinterpret_cast<const char*>(from->extradata),
                        static_cast<size_t>(from->extradata_size));
  }
  to.width = from->width;
  to.height = from->height;
  const char* format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(from->format));
  if (format != nullptr) to.pixel_format = format;
  to.profile = from->profile;
  to.level = from->level;
  to.field_order = from->field_order;
  to.color_range = from->color_range;
  to.color_primaries = from->color_primaries;
  to.color_transfer = from->color_trc;
  to.color_space = from->color_space;
  to.chroma_location = from->chroma_location;
  to.video_delay = from->video_delay;
  to.bits_per_raw_sample = from->bits_per_raw_sample;
  to.bits_per_coded_sample = from->bits_per_coded_sample;
  to.sample_aspect_ratio = From(stream->sample_aspect_ratio.num > 0 ? stream->sample_aspect_ratio
                                                                    : from->sample_aspect_ratio);
  to.time_base = From(stream->time_base);
  to.frame_rate =
      From(stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate);
  size_t size = 0;
  const uint8_t* matrix = SideData(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (matrix != nullptr && size >= 9 * sizeof(int32_t)) {
    int32_t values[9];
    std::memcpy(values, matrix, sizeof values);
    SetRotation(values, &to);
  }
  return to;
}

Status Decodable(const AVStream* stream) {
  size_t size = 0;
  if (SideData(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, &size) != nullptr ||
      av_dict_get(stream->metadata, "enc_key_id", nullptr, 0) != nullptr) {
    return Status(Code::kUnimplemented, "the video is encrypted");
  }
  const AVCodecID codec = stream->codecpar->codec_id;
  if (codec == AV_CODEC_ID_NONE) {
    char tag[AV_FOURCC_MAX_STRING_SIZE] = {};
    av_fourcc_make_string(tag, stream->codecpar->codec_tag);
    return Status(Code::kUnimplemented,
                  fmt::format("stream {}: FFmpeg does not know the codec {}", stream->index, tag));
  }
  if (avcodec_find_decoder(codec) == nullptr) {
    return Status(Code::kUnimplemented, fmt::format("stream {}: this FFmpeg has no decoder for {}",
                                                    stream->index, avcodec_get_name(codec)));
  }
  return {};
}

Result<CodecContextPtr> OpenDecoder(const AVCodecParameters* parameters, int flags) {
  // FFmpeg's own AV1 decoder needs a GPU; dav1d does not.
  const AVCodec* codec =
      parameters->codec_id == AV_CODEC_ID_AV1 ? avcodec_find_decoder_by_name("libdav1d") : nullptr;
  if (codec == nullptr) codec = avcodec_find_decoder(parameters->codec_id);
  if (codec == nullptr) {
    return Status(Code::kUnimplemented, fmt::format("this FFmpeg has no decoder for {}",
                                                    avcodec_get_name(parameters->codec_id)));
  }
  CodecContextPtr context(avcodec_alloc_context3(codec));
  if (context == nullptr) return Status(Code::kResourceExhausted, "no memory for a decoder");
  int error = avcodec_parameters_to_context(context.get(), parameters);
  context->thread_count = 1;
  context->flags |= flags;
  context->log_level_offset = 100;
  if (error >= 0) error = avcodec_open2(context.get(), codec, nullptr);
  if (error < 0) {
    return Status(Code::kDataLoss, fmt::format("the {} decoder does not take the stream's "
                                               "parameters: {}",
                                               codec->name, AvError(error)));
  }
  return context;
}

}  // namespace forebay::media::ffmpeg
