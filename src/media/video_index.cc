#include "media/video_index.h"

#include <algorithm>

namespace forebay::media {

double VideoIndex::MeanFrameRate() const {
  if (frames.size() < 2 || parameters.time_base.den == 0) return 0;
  const int64_t first = frames.front().pts, last = frames.back().pts;
  if (first == kNoPts || last == kNoPts || last <= first) {
    const Rational& r = parameters.frame_rate;
    return r.num > 0 && r.den > 0 ? static_cast<double>(r.num) / r.den : 0;
  }
  const double seconds =
      static_cast<double>(last - first) * parameters.time_base.num / parameters.time_base.den;
  return static_cast<double>(frames.size() - 1) / seconds;
}

double VideoIndex::FrameSeconds(uint32_t frame) const {
  if (frame >= frames.size() || parameters.time_base.den == 0) return 0;
  const int64_t first = frames.front().pts, pts = frames[frame].pts;
  if (first == kNoPts || pts == kNoPts) {
    const double rate = MeanFrameRate();
    return rate > 0 ? frame / rate : 0;
  }
  return static_cast<double>(pts - first) * parameters.time_base.num / parameters.time_base.den;
}

}  // namespace forebay::media
