#include "media/ffmpeg/demux_range.h"

namespace forebay::media::ffmpeg {

Status DemuxRange(const VideoIndex& index, ByteView range,
                  const std::function<bool(const AVPacket&)>& on_packet) {
  MemorySource source(AsBytes(index.demux_header), range);
  // No probing: the demuxer is named, and the codec is known.
  FB_ASSIGN_OR_RETURN(
      auto demuxer, Demuxer::Open(&source, {.format = index.container.c_str(), .seekable = false}));
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr) return Status(Code::kResourceExhausted, "no memory for a packet");
  for (;;) {
    FB_ASSIGN_OR_RETURN(const bool more, demuxer->Next(packet.get()));
    if (!more) return {};
    const AVStream* stream = demuxer->context()->streams[packet->stream_index];
    if (stream->id != index.demux_stream || packet->size <= 0) continue;
    if (!on_packet(*packet)) return {};
  }
}

}  // namespace forebay::media::ffmpeg
