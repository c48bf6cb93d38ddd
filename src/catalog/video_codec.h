// A video index as packed columns: about 5 bytes a frame. Byte table: docs/formats/catalog.md.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "media/video_index.h"

namespace forebay::catalog {

std::vector<std::byte> PackVideo(const media::VideoIndex& index);
// Errors: kDataLoss (what is packed is damaged or contradicts itself).
Result<media::VideoIndex> UnpackVideo(ByteView packed);

}  // namespace forebay::catalog
