// What the catalog keeps of one video stream, and what decoding needs: plain data, no FFmpeg type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::media {

struct Rational {
  int32_t num = 0;
  int32_t den = 1;
};

inline constexpr int64_t kNoPts = INT64_MIN;

// In front of a parameter set that is no extradata but the colours of a picture of indices
// (FFmpeg's AV_PKT_DATA_PALETTE). No extradata begins so.
inline constexpr std::string_view kPaletteMark = "forebay palette:";

// One packet in decode order.
struct Packet {
  enum Flag : uint8_t {
    kKey = 1,      // a verified sync point: decoding may start here
    kDiscard = 2,  // needed for decoding, never shown (edit list)
    // No other frame refers to it, and it carries no parameter set. Set where its bytes were read
    // and said so: in a file indexed by its sample table alone packets mostly lack it, and whoever
    // has the bytes at hand may look (ffmpeg/bitstream.h).
    kDisposable = 4,
    // Shown before the sync point that it follows in decode order, and yet decodable from it (RADL,
    // closed GOP): its run may start at the last sync packet s <= t whatever pts[s] is.
    kLeading = 8,
    // Bytes of it are missing in the container, though a decoder may not notice: whatever needs it
    // is an error.
    kDamaged = 16,
  };
  uint64_t offset = 0;  // of the payload in the object; kDemux: see Access
  uint32_t size = 0;
  // The order in which frames are shown, comparable between packets of one stream: the container's
  // time where it has times that agree with what a decoder puts out, else (AVI, raw streams, wrong
  // times: Frame::pts is then kNoPts or not monotonic) the rank found by decoding. kNoPts: nothing
  // comes out of this packet.
  int64_t pts = kNoPts;
  int64_t dts = kNoPts;
  uint8_t flags = 0;
  uint16_t recovery = 0;  // at a kKey that is a gradual refresh: frames until the picture is right
  uint16_t parameter_set = 0;  // 0: the stream's extradata; i: parameter_sets[i - 1] is in force
};

struct StreamParameters {
  std::string codec;  // FFmpeg's short name: h264, hevc, av1, vp9, ...
  uint32_t codec_tag = 0;
  std::string extradata;  // verbatim (avcC, hvcC, av1C, Annex B, ...)
  int32_t width = 0;      // coded picture as the container tells it
  int32_t height = 0;
  std::string pixel_format;  // FFmpeg's name: yuv420p, yuv420p10le, ...
  int32_t profile = -99;
  int32_t level = -99;
  int32_t field_order = 0;
  int32_t color_range = 0, color_primaries = 2, color_transfer = 2, color_space = 2;
  int32_t chroma_location = 0;
  int32_t video_delay = 0;  // has_b_frames
  int32_t bits_per_raw_sample = 0, bits_per_coded_sample = 0;
  Rational sample_aspect_ratio{0, 1};
  Rational time_base{1, 1};   // of pts and dts
  Rational frame_rate{0, 1};  // informative only
  int32_t rotation = 0;       // clockwise degrees to show it upright: 0, 90, 180, 270
  bool flip = false;          // horizontal flip, after the rotation
};

enum class Access : uint8_t {
  kPackets = 0,  // packets are contiguous in the object: feed them straight
  // TS, PS, laced or compressed Matroska: a range is demuxed in memory. [offset, offset + size) is
  // then the span of container bytes that a demuxer has to see, behind `demux_header`, to give the
  // packet whole. Spans ascend by offset and may overlap; packets that begin in one unit (Matroska
  // cluster, TS or PS packet) have the same offset. Checked for the offset of every sync packet:
  // demuxing `demux_header` + [offset, end of the last wanted span) by the demuxer `container`,
  // stream with AVStream::id `demux_stream`, gives the packets from the first one with that offset
  // on, in order and complete; the first may have foreign bytes in front (its payload is the last
  // payload_sizes[i] bytes), the others have exactly payload_sizes[i] bytes. Packets past the last
  // wanted one may follow, the very last of them cut short.
  kDemux = 1,
};

enum class Verified : uint8_t { kNone = 0, kHeads = 1, kFull = 2 };

// One frame in presentation order.
struct Frame {
  uint32_t packet = 0;   // index into packets
  int64_t pts = kNoPts;  // in time_base; kNoPts where the container has none
};

struct VideoIndex {
  uint32_t stream = 0;    // FFmpeg's stream index in the container
  std::string container;  // mov, matroska, mpegts, avi, ...
  StreamParameters parameters;
  // Extradata in force where it is not `parameters`', or kPaletteMark and a palette.
  std::vector<std::string> parameter_sets;
  std::vector<Packet> packets;  // decode order
  std::vector<Frame> frames;    // presentation order: frame number = position
  bool pts_monotonic = true;    // false: times cannot be asked for
  bool truncated = false;       // the object ends before the container says so
  Access access = Access::kPackets;
  std::string demux_header;             // kDemux: bytes put in front of a range (PAT + PMT, ...)
  int32_t demux_stream = 0;             // kDemux: AVStream::id (PID, track number) of this stream
  std::vector<uint32_t> payload_sizes;  // kDemux: of packets[i] as demuxed; else empty
  Verified verified = Verified::kNone;

  // Frames shown per second on average, from the times; 0 if unknown.
  double MeanFrameRate() const;
  // Seconds from the first frame's time to frame i's.
  double FrameSeconds(uint32_t frame) const;
};

// What has to be fetched and fed to get some frames: runs in decode order, each starting at a sync
// point. `packets` leaves out those that no wanted frame refers to.
struct DecodeRun {
  std::vector<uint32_t> packets;  // indices into VideoIndex::packets, ascending
  std::vector<uint32_t> frames;   // frame numbers that come out, ascending
};

// The closure rule: for a wanted frame at packet t the run starts at the last sync packet s <= t
// with pts[s] <= pts[t] and, for gradual refreshes, t - s >= recovery. Errors: kInvalidArgument
// (a frame number outside the index), kDataLoss (no sync point before it).
Result<std::vector<DecodeRun>> PlanDecode(const VideoIndex& index,
                                          const std::vector<uint32_t>& frames);

// The byte ranges of the runs' packets, ascending, merged where the gap between two packets costs
// less than a request: gap_bytes_max is that price. For kDemux: whole spans.
std::vector<ByteRange> RangesOf(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                                uint64_t gap_bytes_max);

}  // namespace forebay::media
