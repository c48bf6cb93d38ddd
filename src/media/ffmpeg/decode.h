// The decoder's entry behind the plug-in boundary; the contract is VideoDecoder's (media/media.h).
#pragma once

#include "media/media.h"

namespace forebay::media::ffmpeg {

Result<std::unique_ptr<VideoDecoder>> MakeDecoder(const VideoDecoder::Options& options);

}  // namespace forebay::media::ffmpeg
