// From libavformat's view of a stream to the plain data of an index.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "media/ffmpeg/scan_io.h"

namespace forebay::media::ffmpeg {

// The video streams worth an index: no attached pictures, a codec that is known.
std::vector<unsigned> VideoStreams(const AVFormatContext* context);

StreamParameters ParametersOf(const AVStream* stream);

// The rotation and flip of a 3x3 display matrix (16.16), to the nearest quarter turn.
void SetRotation(const int32_t* matrix, StreamParameters* parameters);

struct CodecContextFree {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
};
using CodecContextPtr = std::unique_ptr<AVCodecContext, CodecContextFree>;

// A decoder for packets with these parameters, one thread, opened. kUnimplemented: no decoder.
Result<CodecContextPtr> OpenDecoder(const AVCodecParameters* parameters, int flags);

// Why a stream's packets cannot be decoded at all: encrypted, codec unknown or missing. OK if they
// can.
Status Decodable(const AVStream* stream);

}  // namespace forebay::media::ffmpeg
