#include "catalog/video_codec.h"

#include <utility>

#include "catalog/coding.h"

namespace forebay::catalog {
namespace {

using media::Frame;
using media::kNoPts;
using media::Packet;
using media::Rational;
using media::StreamParameters;
using media::VideoIndex;

// Differences wrap around: kNoPts beside a real time must not overflow.
int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

void PutRational(Writer& out, const Rational& value) {
  out.Zigzag(value.num);
  out.Zigzag(value.den);
}
Rational GetRational(Reader& in) {
  const auto num = static_cast<int32_t>(in.Zigzag());
  return {num, static_cast<int32_t>(in.Zigzag())};
}

// The integer fields of StreamParameters, in the order of the byte table.
template <class Parameters, class F>
void ForEachInteger(Parameters& p, F f) {
  f(p.width), f(p.height), f(p.profile), f(p.level), f(p.field_order), f(p.color_range);
  f(p.color_primaries), f(p.color_transfer), f(p.color_space), f(p.chroma_location);
  f(p.video_delay), f(p.bits_per_raw_sample), f(p.bits_per_coded_sample), f(p.rotation);
}

void PutParameters(Writer& out, const StreamParameters& p) {
  out.Text(p.codec);
  out.Varint(p.codec_tag);
  out.Text(p.extradata);
  out.Text(p.pixel_format);
  ForEachInteger(p, [&](int32_t value) { out.Zigzag(value); });
  PutRational(out, p.sample_aspect_ratio);
  PutRational(out, p.time_base);
  PutRational(out, p.frame_rate);
  out.Varint(p.flip ? 1 : 0);
}

StreamParameters GetParameters(Reader& in) {
  StreamParameters p;
  p.codec = in.Text();
  p.codec_tag = static_cast<uint32_t>(in.Varint());
  p.extradata = in.Text();
  p.pixel_format = in.Text();
  ForEachInteger(p, [&](int32_t& value) { value = static_cast<int32_t>(in.Zigzag()); });
  p.sample_aspect_ratio = GetRational(in);
  p.time_base = GetRational(in);
  p.frame_rate = GetRational(in);
  p.flip = in.Varint() != 0;
  return p;
}

// A column whose values repeat: (run length, value) pairs.
template <class Get>
void PutRuns(Writer& out, size_t n, Get get) {
  for (size_t i = 0; i < n;) {
    size_t end = i + 1;
    while (end < n && get(end) == get(i)) ++end;
    out.Varint(end - i);
    out.Varint(get(i));
    i = end;
  }
}
template <class Set>
bool GetRuns(Reader& in, size_t n, Set set) {
  for (size_t i = 0; i < n;) {
    const uint64_t length = in.Varint();
    const uint64_t value = in.Varint();
    if (!in.ok() || length == 0 || length > n - i) return false;
    for (uint64_t k = 0; k < length; ++k) set(i++, value);
  }
  return true;
}

void PutPackets(Writer& out, const std::vector<Packet>& packets) {
  out.Varint(packets.size());
  uint64_t end = 0;
  int64_t dts = 0;
  int64_t step = 0;
  for (const Packet& packet : packets) {
    out.Zigzag(Minus(static_cast<int64_t>(packet.offset), static_cast<int64_t>(end)));
    out.Varint(packet.size);
    end = packet.offset + packet.size;
    const int64_t now = Minus(packet.dts, dts);
    out.Zigzag(Minus(now, step));  // 0 at a constant rate
    dts = packet.dts;
    step = now;
    out.Zigzag(Minus(packet.pts, packet.dts));
  }
  PutRuns(out, packets.size(), [&](size_t i) { return uint64_t{packets[i].flags}; });
  PutRuns(out, packets.size(), [&](size_t i) { return uint64_t{packets[i].recovery}; });
  PutRuns(out, packets.size(), [&](size_t i) { return uint64_t{packets[i].parameter_set}; });
}

bool GetPackets(Reader& in, std::vector<Packet>& packets) {
  packets.resize(in.Count(4));
  uint64_t end = 0;
  int64_t dts = 0;
  int64_t step = 0;
  for (Packet& packet : packets) {
    packet.offset = end + static_cast<uint64_t>(in.Zigzag());
    packet.size = static_cast<uint32_t>(in.Varint());
    end = packet.offset + packet.size;
    step = Plus(step, in.Zigzag());
    dts = Plus(dts, step);
    packet.dts = dts;
    packet.pts = Plus(dts, in.Zigzag());
    if (packet.offset > INT64_MAX || end < packet.offset) return false;
  }
  const size_t n = packets.size();
  return GetRuns(in, n,
                 [&](size_t i, uint64_t v) { packets[i].flags = static_cast<uint8_t>(v); }) &&
         GetRuns(in, n,
                 [&](size_t i, uint64_t v) { packets[i].recovery = static_cast<uint16_t>(v); }) &&
         GetRuns(in, n, [&](size_t i, uint64_t v) {
           packets[i].parameter_set = static_cast<uint16_t>(v);
         });
}

void PutFrames(Writer& out, const VideoIndex& index) {
  out.Varint(index.frames.size());
  int64_t previous = -1;
  for (const Frame& frame : index.frames) {
    out.Zigzag(Minus(frame.packet, previous) - 1);
    out.Zigzag(Minus(frame.pts, index.packets[frame.packet].pts));  // mostly 0
    previous = frame.packet;
  }
}

bool GetFrames(Reader& in, VideoIndex& index) {
  index.frames.resize(in.Count(2));
  int64_t previous = -1;
  for (Frame& frame : index.frames) {
    const int64_t packet = Plus(Plus(previous, 1), in.Zigzag());
    if (packet < 0 || static_cast<uint64_t>(packet) >= index.packets.size()) return false;
    frame.packet = static_cast<uint32_t>(packet);
    frame.pts = Plus(index.packets[frame.packet].pts, in.Zigzag());
    previous = packet;
  }
  return true;
}

constexpr uint64_t kPtsMonotonic = 1;
constexpr uint64_t kTruncated = 2;

}  // namespace

std::vector<std::byte> PackVideo(const VideoIndex& index) {
  Writer out;
  out.Varint(index.stream);
  out.Text(index.container);
  PutParameters(out, index.parameters);
  out.Varint((index.pts_monotonic ? kPtsMonotonic : 0) | (index.truncated ? kTruncated : 0));
  out.Varint(static_cast<uint64_t>(index.access));
  out.Varint(static_cast<uint64_t>(index.verified));
  out.Varint(index.parameter_sets.size());
  for (const std::string& set : index.parameter_sets) out.Text(set);
  PutPackets(out, index.packets);
  PutFrames(out, index);
  out.Text(index.demux_header);
  out.Zigzag(index.demux_stream);
  out.Varint(index.payload_sizes.size());
  for (const uint32_t size : index.payload_sizes) out.Varint(size);
  return std::move(out.bytes());
}

Result<VideoIndex> UnpackVideo(ByteView packed) {
  Reader in(packed);
  VideoIndex index;
  index.stream = static_cast<uint32_t>(in.Varint());
  index.container = in.Text();
  index.parameters = GetParameters(in);
  const uint64_t bits = in.Varint();
  index.pts_monotonic = (bits & kPtsMonotonic) != 0;
  index.truncated = (bits & kTruncated) != 0;
  const uint64_t access = in.Varint();
  const uint64_t verified = in.Varint();
  const uint64_t sets = in.Count(1);
  for (uint64_t i = 0; i < sets; ++i) index.parameter_sets.push_back(in.Text());
  bool good = GetPackets(in, index.packets) && GetFrames(in, index);
  index.demux_header = in.Text();
  index.demux_stream = static_cast<int32_t>(in.Zigzag());
  index.payload_sizes.resize(in.Count(1));
  for (uint32_t& size : index.payload_sizes) size = static_cast<uint32_t>(in.Varint());
  good = good && in.ok() && in.at_end() && access <= 1 && verified <= 2;
  good =
      good && (index.payload_sizes.empty() || index.payload_sizes.size() == index.packets.size());
  for (const Packet& packet : index.packets) {
    good = good && packet.parameter_set <= index.parameter_sets.size();
  }
  if (!good) return Status(Code::kDataLoss, "the packed video index is damaged");
  index.access = static_cast<media::Access>(access);
  index.verified = static_cast<media::Verified>(verified);
  return index;
}

}  // namespace forebay::catalog
