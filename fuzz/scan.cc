extern "C" {
#include <libavutil/log.h>
}

#include <algorithm>

#include "base/assert.h"
#include "catalog/video_codec.h"
#include "fuzz/targets.h"
#include "media/ffmpeg/scan.h"

namespace forebay::fuzz {

void Scan(ByteView input) {
  av_log_set_level(AV_LOG_QUIET);
  const media::ReadAt read_at = [&](ByteRange range, MutableBytes into) {
    FB_ASSERT(range.offset <= range.end && range.end <= input.size());
    FB_ASSERT(into.size() == range.size());
    std::ranges::copy(input.subspan(range.offset, range.size()), into.begin());
    return Status();
  };
  media::ScanReport report;
  const auto indexes =
      media::ffmpeg::Scan(read_at, input.size(), {.read_many = nullptr, .frames_max = 64}, &report);
  if (!indexes.ok()) {
    FB_ASSERT(indexes.code() != Code::kInternal);
    return;
  }
  for (const media::VideoIndex& index : *indexes) {
    const auto packed = catalog::PackVideo(index);
    const auto again = catalog::UnpackVideo(packed);
    FB_ASSERT(again.ok() && catalog::PackVideo(*again) == packed);
    for (uint32_t i = 0; i < index.frames.size(); ++i) {
      const auto runs = media::PlanDecode(index, {i});
      if (!runs.ok()) continue;
      for (const ByteRange& range : media::RangesOf(index, *runs, 0)) {
        FB_ASSERT(range.offset < range.end && range.end <= input.size());
      }
    }
  }
}

}  // namespace forebay::fuzz
