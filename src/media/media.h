// Video scan and decode behind a plain boundary. FFmpeg stays in a library of its own
// (libforebay_media.so), opened on first use, so that nothing else pays its start-up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "media/video_index.h"

namespace forebay::media {

// The bytes of [range), which lies inside the object. Blocking; any thread that scans.
using ReadAt = std::function<Status(ByteRange range, MutableBytes into)>;

// Several such ranges at once, into[i] for ranges[i]: whoever has a store sends them in parallel,
// so that a hundred sync points cost one round trip. The first error fails the whole.
using ReadMany = std::function<Status(const std::vector<ByteRange>& ranges,
                                      const std::vector<MutableBytes>& into)>;

struct ScanOptions {
  ReadMany read_many;  // optional; null: read_at, one after the other
  Verified verify = Verified::kHeads;
  uint64_t frames_max = 50'000'000;
};

// What a scan looked at, beside the index.
struct ScanReport {
  uint64_t bytes_wanted = 0;      // sum of the ranges asked of ReadAt
  bool had_sample_table = false;  // the packet table came without reading the media bytes
  uint32_t sync_points_removed = 0;
  std::vector<std::string> warnings;
};

// The index of every video stream of a container, in stream order, attached pictures left out. By
// ReadAt alone. Errors: kDataLoss (truncated before its index, no decodable sync point, damaged),
// kUnimplemented (encrypted; a codec this FFmpeg lacks), kInvalidArgument (not a video), and what
// ReadAt returned.
Result<std::vector<VideoIndex>> ScanVideo(const ReadAt& read_at, uint64_t object_size,
                                          const ScanOptions& options, ScanReport* report);

// Bytes of an object as they were fetched: several ranges, each over several slabs.
class FetchedBytes {
 public:
  virtual ~FetchedBytes() = default;
  // Copies the bytes of `range` into `into` (of the same size). The decoder copies each packet it
  // feeds once, into memory of its own that it pads; a packet is small beside its picture.
  // kDataLoss if not all of it was fetched.
  virtual Status Copy(ByteRange range, MutableBytes into) const = 0;
};

enum class PixelLayout : uint8_t { kHwc, kChw };

struct OutputFormat {
  int32_t width = 0;  // 0: as the stream, after rotation
  int32_t height = 0;
  PixelLayout layout = PixelLayout::kHwc;
  bool native = false;  // raw planes in the stream's own pixel format, as framemd5 hashes them
};

// One stream's geometry after rotation, before a resize.
struct DisplaySize {
  int32_t width = 0;
  int32_t height = 0;
};
DisplaySize DisplaySizeOf(const StreamParameters& parameters);

// Receives decoded frames in ascending order of frame number. `planes`: native, one buffer of all
// planes packed without padding; otherwise RGB as OutputFormat says.
struct NativeFrame {
  uint32_t frame = 0;
  int32_t width = 0;
  int32_t height = 0;
  std::string pixel_format;
  std::vector<std::byte> bytes;
};

// Decodes from fetched packets. Keeps decoders open per stream parameters (an LRU). One thread at a
// time; decode workers own one each.
class VideoDecoder {
 public:
  struct Options {
    uint32_t open_decoders_max = 16;
    bool drop_unreferenced = true;  // false only to measure what it saves
  };
  static Result<std::unique_ptr<VideoDecoder>> Make(const Options& options);
  virtual ~VideoDecoder() = default;

  // Exactly the wanted frames of `runs` (from PlanDecode), RGB, frame i of the runs' ascending
  // frames at output + i * frame_bytes, frame_bytes = width * height * 3. Errors: kDataLoss naming
  // frame, packet and offset (a packet does not decode, a frame does not come out).
  virtual Status DecodeRgb(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                           const FetchedBytes& bytes, const OutputFormat& format,
                           MutableBytes output) = 0;
  // The same in the stream's own pixel format.
  virtual Status DecodeNative(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                              const FetchedBytes& bytes,
                              const std::function<Status(NativeFrame)>& on_frame) = 0;
};

// Versions of the FFmpeg in use ("libavcodec 59.37.100, ..."), for reports.
Result<std::string> MediaVersion();

}  // namespace forebay::media
