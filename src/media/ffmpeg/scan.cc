#include "media/ffmpeg/scan.h"

namespace forebay::media::ffmpeg {

Result<std::vector<VideoIndex>> Scan(const ReadAt&, uint64_t, const ScanOptions&, ScanReport*) {
  return Status(Code::kUnimplemented, "this build cannot index video");
}

}  // namespace forebay::media::ffmpeg
