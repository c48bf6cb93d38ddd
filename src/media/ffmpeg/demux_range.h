// Packets out of a range of a container's bytes (Access::kDemux): the bytes in memory are demuxed
// behind what the demuxer needs to know first.
#pragma once

#include <functional>

#include "media/ffmpeg/scan_io.h"

namespace forebay::media::ffmpeg {

// Demuxes `index.demux_header` and `range`, and hands over the payload of each packet of the stream
// in turn, until `on_packet` returns false. The caller knows which packets to expect
// (video_index.h, Access). Errors: kDataLoss (the demuxer does not take the bytes),
// kResourceExhausted.
Status DemuxRange(const VideoIndex& index, ByteView range,
                  const std::function<bool(const AVPacket&)>& on_packet);

}  // namespace forebay::media::ffmpeg
