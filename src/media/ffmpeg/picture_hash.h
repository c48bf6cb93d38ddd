// A hash of a decoded picture as it stands in its own pixel format.
#pragma once

extern "C" {
#include <libavutil/frame.h>
}

#include <cstdint>

namespace forebay::media::ffmpeg {

// Of format, size and the visible samples of every plane; never 0. Equal for equal pictures within
// one process, no more is promised.
uint64_t HashOfPicture(const AVFrame& frame);

}  // namespace forebay::media::ffmpeg
