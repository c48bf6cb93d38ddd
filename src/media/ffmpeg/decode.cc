#include "media/ffmpeg/decode.h"

namespace forebay::media::ffmpeg {

Result<std::unique_ptr<VideoDecoder>> MakeDecoder(const VideoDecoder::Options&) {
  return Status(Code::kUnimplemented, "this build cannot decode video");
}

}  // namespace forebay::media::ffmpeg
