// The scan's entry behind the plug-in boundary; the contract is ScanVideo's (media/media.h).
#pragma once

#include "media/media.h"

namespace forebay::media::ffmpeg {

Result<std::vector<VideoIndex>> Scan(const ReadAt& read_at, uint64_t object_size,
                                     const ScanOptions& options, ScanReport* report);

}  // namespace forebay::media::ffmpeg
