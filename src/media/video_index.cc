#include "media/video_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "media/media.h"

namespace forebay::media {
namespace {

bool Has(const Packet& packet, Packet::Flag flag) { return (packet.flags & flag) != 0; }

// What one wanted frame needs: packets [sync, last], of which `packet` is the frame's own.
struct Closure {
  uint32_t sync = 0;
  uint32_t last = 0;
  uint32_t packet = 0;
  uint32_t frame = 0;
};

// Whether decoding from the sync packet `s` gives the picture of packet `t` right. `kept` counts
// the packets in (s, t] that others may refer to: a gradual refresh advances by these alone.
bool ServesFrom(const VideoIndex& index, uint32_t s, uint32_t t, uint32_t kept) {
  const Packet& sync = index.packets[s];
  const Packet& wanted = index.packets[t];
  if (sync.recovery > 0) return kept >= sync.recovery;
  return s == t || Has(wanted, Packet::kLeading) || sync.pts <= wanted.pts;
}

Result<Closure> ClosureOf(const VideoIndex& index, uint32_t frame) {
  if (frame >= index.frames.size()) {
    return Status(Code::kInvalidArgument, fmt::format("frame {} is not in the video, which has {}",
                                                      frame, index.frames.size()));
  }
  const uint32_t t = index.frames[frame].packet;
  if (t >= index.packets.size()) {
    return Status(Code::kDataLoss,
                  fmt::format("the index is damaged: frame {} lies in packet {} of {}", frame, t,
                              index.packets.size()));
  }
  Closure closure{.sync = t, .last = t, .packet = t, .frame = frame};
  // The second field of a picture whose fields came in packets of their own.
  if (index.parameters.codec == "h264" && index.parameters.field_order > 1 &&
      t + 1 < index.packets.size() && index.packets[t + 1].pts == kNoPts &&
      (index.packets[t + 1].flags & ~Packet::kDamaged) == 0) {
    closure.last = t + 1;
  }
  uint32_t kept = 0;
  for (uint32_t s = t + 1; s-- > 0;) {
    const Packet& packet = index.packets[s];
    if (Has(packet, Packet::kKey) && ServesFrom(index, s, t, kept)) {
      closure.sync = s;
      return closure;
    }
    if (!Has(packet, Packet::kDisposable)) ++kept;
  }
  return Status(Code::kDataLoss,
                fmt::format("frame {} (packet {}) has no sync point before it", frame, t));
}

// One run under construction: the closures in it and the packets they span.
struct Span {
  uint32_t first = 0;
  uint32_t last = 0;
  std::vector<Closure> closures;
};

// Closures that overlap or continue each other share a run, and so do those that would otherwise
// come out of order: starting earlier is always right.
std::vector<Span> Join(std::vector<Closure> closures) {
  std::ranges::sort(closures, [](const Closure& a, const Closure& b) {
    return a.sync != b.sync ? a.sync < b.sync : a.packet < b.packet;
  });
  std::vector<Span> spans;
  uint32_t highest_frame = 0;
  for (const Closure& closure : closures) {
    const bool joins =
        !spans.empty() && (closure.sync <= spans.back().last + 1 || closure.frame < highest_frame);
    if (!joins) spans.push_back({.first = closure.sync, .last = closure.last, .closures = {}});
    spans.back().last = std::max(spans.back().last, closure.last);
    spans.back().closures.push_back(closure);
    highest_frame = std::max(highest_frame, closure.frame);
  }
  return spans;
}

DecodeRun RunOf(const VideoIndex& index, const Span& span) {
  DecodeRun run;
  std::vector<uint32_t> wanted;
  for (const Closure& closure : span.closures) {
    run.frames.push_back(closure.frame);
    for (uint32_t p = closure.packet; p <= closure.last; ++p) wanted.push_back(p);
  }
  std::ranges::sort(run.frames);
  std::ranges::sort(wanted);
  auto next = wanted.begin();
  for (uint32_t p = span.first; p <= span.last; ++p) {
    while (next != wanted.end() && *next < p) ++next;
    const bool is_wanted = next != wanted.end() && *next == p;
    if (is_wanted || !Has(index.packets[p], Packet::kDisposable)) run.packets.push_back(p);
  }
  return run;
}

}  // namespace

Result<std::vector<DecodeRun>> PlanDecode(const VideoIndex& index,
                                          const std::vector<uint32_t>& frames) {
  std::vector<uint32_t> distinct = frames;
  std::ranges::sort(distinct);
  distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
  std::vector<Closure> closures;
  closures.reserve(distinct.size());
  for (const uint32_t frame : distinct) {
    FB_ASSIGN_OR_RETURN(const Closure closure, ClosureOf(index, frame));
    closures.push_back(closure);
  }
  std::vector<DecodeRun> runs;
  for (const Span& span : Join(std::move(closures))) runs.push_back(RunOf(index, span));
  return runs;
}

std::vector<ByteRange> RangesOf(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                                uint64_t gap_bytes_max) {
  std::vector<ByteRange> pieces;
  for (const DecodeRun& run : runs) {
    ByteRange whole{.offset = UINT64_MAX, .end = 0};
    for (const uint32_t p : run.packets) {
      const ByteRange range{.offset = index.packets[p].offset,
                            .end = index.packets[p].offset + index.packets[p].size};
      if (index.access == Access::kPackets) pieces.push_back(range);
      whole = {.offset = std::min(whole.offset, range.offset),
               .end = std::max(whole.end, range.end)};
    }
    if (index.access == Access::kDemux && whole.offset < whole.end) pieces.push_back(whole);
  }
  std::ranges::sort(pieces);
  std::vector<ByteRange> ranges;
  for (const ByteRange& piece : pieces) {
    if (piece.empty()) continue;
    if (!ranges.empty() &&
        (piece.offset <= ranges.back().end || piece.offset - ranges.back().end <= gap_bytes_max)) {
      ranges.back().end = std::max(ranges.back().end, piece.end);
    } else {
      ranges.push_back(piece);
    }
  }
  return ranges;
}

DisplaySize DisplaySizeOf(const StreamParameters& parameters) {
  if (parameters.rotation % 180 != 0) return {parameters.height, parameters.width};
  return {parameters.width, parameters.height};
}

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
