// ISO base media files (mp4, mov, fragmented or not): finds the boxes that describe samples and
// leaves the media bytes where they are.
#pragma once

#include "media/ffmpeg/scan_io.h"

namespace forebay::media::ffmpeg {

// True if the object's first bytes begin with a box of such a file.
bool LooksLikeMp4(ByteView head);

// Fetches what describes the samples into a source that libavformat can open: `head` (the object's
// first bytes), moov wherever it is, every moof. Errors: kDataLoss (no moov, or one that is cut
// short or claims more than there is), kUnimplemented (encrypted), ReadAt's.
Result<SparseSource> MapMp4(ObjectReader* object, std::vector<std::byte> head, uint64_t frames_max);

}  // namespace forebay::media::ffmpeg
