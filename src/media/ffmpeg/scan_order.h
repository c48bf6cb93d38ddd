// Output order as a bitstream itself gives it, by FFmpeg's parsers; and the frame list of an index.
#pragma once

#include "media/ffmpeg/scan_table.h"

struct AVCodecParserContext;

namespace forebay::media::ffmpeg {

// Reads (sequence, picture order count) of the pictures of one stream, in decode order.
class OrderReader {
 public:
  explicit OrderReader(const AVCodecParameters* parameters);
  ~OrderReader();
  OrderReader(const OrderReader&) = delete;
  OrderReader& operator=(const OrderReader&) = delete;

  // False: this codec's parser does not tell.
  bool understands() const { return parser_ != nullptr || mpeg12_; }
  // The order of a packet, comparable with those of the packets before. The start of a packet will
  // do, as long as the lengths in it fit.
  int64_t Read(ByteView packet, const PictureHead& head);
  // What the parser learnt of the pictures; unset where it did not.
  AVPixelFormat pixel_format() const;
  int width() const;
  int height() const;
  bool is_field() const { return is_field_; }

 private:
  bool mpeg12_ = false;
  AVCodecParserContext* parser_ = nullptr;
  CodecContextPtr context_;
  std::vector<uint8_t> padded_;
  int64_t sequence_ = 0;
  bool is_field_ = false;
};

// True if the times of the packets (kDiscard left out) are all there, differ, and sort as `orders`
// does where it is known (INT64_MIN: not known for that packet).
bool TimesAreSound(const StreamScan& scan);

// index.frames from the packets' times, in a stream whose times are sound: shown packets that can
// be reached from a sync packet. Warns of those that cannot.
void FramesByTime(StreamScan* scan, ScanReport* report);
void WarnUnreached(const VideoIndex& index, uint64_t unreached, ScanReport* report);

// Sets pts_monotonic from frames.
void CheckMonotonic(VideoIndex* index);

// For each packet that can be decoded (packet, start): the sync packet at which its run starts, by
// PlanDecode's rule. Ascending by packet.
std::vector<std::pair<uint32_t, uint32_t>> RunStarts(const VideoIndex& index);

}  // namespace forebay::media::ffmpeg
