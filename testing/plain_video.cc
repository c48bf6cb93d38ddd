#include "testing/plain_video.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace forebay::testing {
namespace {

Status Failed(const std::string& what) { return Status(Code::kInternal, what); }

// What has to be freed at the end of a load.
struct Handles {
  AVFormatContext* format = nullptr;
  AVCodecContext* codec = nullptr;
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  int64_t outputs = 0;  // pictures that came out, shown or not
  ~Handles() {
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    avformat_close_input(&format);
  }
};

void FillParameters(const AVStream& stream, media::StreamParameters& p) {
  const AVCodecParameters& c = *stream.codecpar;
  p.codec = avcodec_get_name(c.codec_id);
  p.codec_tag = c.codec_tag;
  if (c.extradata_size > 0) {
    p.extradata.assign(reinterpret_cast<const char*>(c.extradata),
                       static_cast<size_t>(c.extradata_size));
  }
  p.width = c.width;
  p.height = c.height;
  const char* format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(c.format));
  p.pixel_format = format != nullptr ? format : "";
  p.profile = c.profile;
  p.level = c.level;
  p.field_order = c.field_order;
  p.color_range = c.color_range;
  p.color_space = c.color_space;
  p.video_delay = c.video_delay;
  p.bits_per_raw_sample = c.bits_per_raw_sample;
  p.bits_per_coded_sample = c.bits_per_coded_sample;
  p.time_base = {stream.time_base.num, stream.time_base.den};
}

Result<media::Packet> PacketOf(const std::string& bytes, const AVPacket& av) {
  const std::string_view payload(reinterpret_cast<const char*>(av.data),
                                 static_cast<size_t>(av.size));
  const auto pos = static_cast<size_t>(std::max<int64_t>(av.pos, 0));
  const std::string_view near = std::string_view(bytes).substr(pos, payload.size() + 64);
  const size_t at = near.find(payload);
  if (at == std::string_view::npos) return Failed("a packet does not lie in the file in one piece");
  media::Packet packet{.offset = pos + at, .size = static_cast<uint32_t>(av.size)};
  packet.dts = av.dts == AV_NOPTS_VALUE ? media::kNoPts : av.dts;
  if ((av.flags & AV_PKT_FLAG_KEY) != 0) packet.flags |= media::Packet::kKey;
  if ((av.flags & AV_PKT_FLAG_DISCARD) != 0) packet.flags |= media::Packet::kDiscard;
  if ((av.flags & AV_PKT_FLAG_DISPOSABLE) != 0) packet.flags |= media::Packet::kDisposable;
  return packet;
}

void PackPicture(const AVFrame& frame, PlainFrame& out) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const int size = av_image_get_buffer_size(format, out.width, out.height, 1);
  out.native.resize(static_cast<size_t>(size));
  av_image_copy_to_buffer(reinterpret_cast<uint8_t*>(out.native.data()), size, frame.data,
                          frame.linesize, format, out.width, out.height, 1);
}

Status Receive(Handles& h, PlainVideo& video, const std::vector<int64_t>& times,
               bool keep_pictures) {
  for (;;) {
    const int error = avcodec_receive_frame(h.codec, h.frame);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return {};
    if (error < 0) return Failed("the plain loop does not decode a frame");
    PlainFrame out{.packet = static_cast<uint32_t>(h.frame->pts),
                   .width = h.frame->width,
                   .height = h.frame->height,
                   .pixel_format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(h.frame->format)),
                   .native = {}};
    if (keep_pictures) PackPicture(*h.frame, out);
    media::Packet& packet = video.index.packets[out.packet];
    packet.pts = h.outputs++;
    if ((packet.flags & media::Packet::kDiscard) == 0) {
      video.index.frames.push_back({.packet = out.packet, .pts = times[out.packet]});
      video.frames.push_back(std::move(out));
    }
    av_frame_unref(h.frame);
  }
}

Status OpenCodec(Handles& h, const AVCodecParameters& parameters) {
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  h.codec = avcodec_alloc_context3(codec);
  if (avcodec_parameters_to_context(h.codec, &parameters) < 0) return Failed("parameters");
  h.codec->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
  h.codec->thread_count = 1;
  return avcodec_open2(h.codec, codec, nullptr) < 0 ? Failed("the codec does not open") : Status();
}

}  // namespace

Result<PlainVideo> PlainVideo::Load(const std::string& path, bool keep_pictures) {
  PlainVideo video;
  std::ifstream file(path, std::ios::binary);
  video.bytes.assign(std::istreambuf_iterator<char>(file), {});
  Handles h;
  if (avformat_open_input(&h.format, path.c_str(), nullptr, nullptr) < 0 ||
      avformat_find_stream_info(h.format, nullptr) < 0) {
    return Failed(path + " does not open");
  }
  const int number = av_find_best_stream(h.format, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (number < 0) return Failed(path + " has no video");
  AVStream* stream = h.format->streams[number];
  FillParameters(*stream, video.index.parameters);
  FB_RETURN_IF_ERROR(OpenCodec(h, *stream->codecpar));
  std::vector<int64_t> times;
  while (av_read_frame(h.format, h.packet) >= 0) {
    if (h.packet->stream_index == number) {
      FB_ASSIGN_OR_RETURN(const media::Packet packet, PacketOf(video.bytes, *h.packet));
      times.push_back(h.packet->pts == AV_NOPTS_VALUE ? media::kNoPts : h.packet->pts);
      h.packet->pts = static_cast<int64_t>(video.index.packets.size());
      h.packet->flags &= ~AV_PKT_FLAG_DISCARD;
      video.index.packets.push_back(packet);
      if (avcodec_send_packet(h.codec, h.packet) < 0) return Failed("a packet does not decode");
      FB_RETURN_IF_ERROR(Receive(h, video, times, keep_pictures));
    }
    av_packet_unref(h.packet);
  }
  avcodec_send_packet(h.codec, nullptr);
  FB_RETURN_IF_ERROR(Receive(h, video, times, keep_pictures));
  return video;
}

Status FetchedText::Copy(ByteRange range, MutableBytes into) const {
  for (const ByteRange& held : ranges_) {
    if (!held.Contains(range)) continue;
    std::memcpy(into.data(), bytes_.data() + range.offset, into.size());
    return {};
  }
  return Status(Code::kDataLoss,
                fmt::format("bytes {} to {} were not fetched", range.offset, range.end));
}

Status MakeVideo(const std::string& arguments, const std::string& path) {
  const std::string command = "SVT_LOG=0 ffmpeg -nostdin -v error -y " + arguments + " " + path;
  return std::system(command.c_str()) == 0 ? Status() : Failed("failed: " + command);
}

}  // namespace forebay::testing
