// Opens libavcodec decoders from the index's parameters, without any container.
#pragma once

#include <string>

#include "media/ffmpeg/av.h"

namespace forebay::media::ffmpeg {

// One thread, strict, showing what is damaged instead of hiding it, frames tagged by packet pts.
// kUnimplemented when this FFmpeg has no such decoder, kInvalidArgument when it refuses the
// parameters.
Result<AvPtr<AVCodecContext>> OpenCodec(const StreamParameters& parameters);

// Equal keys: a decoder opened for one serves the other.
std::string CodecKey(const StreamParameters& parameters);

// Puts a parameter set of the index (VideoIndex::parameter_sets) in force with this packet.
Status AttachParameterSet(const std::string& set, AVPacket* packet);

// Such a set that is a palette, not extradata; and how one is made.
bool IsPalette(const std::string& set);
std::string PaletteSet(ByteView palette);

// Which errors a decoder reports instead of concealing them.
inline constexpr int kStrict = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;

}  // namespace forebay::media::ffmpeg
