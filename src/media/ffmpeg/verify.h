// What decoding itself says of a stream: which packets come out, in which order, and at which
// packets decoding can really start.
#pragma once

#include "media/ffmpeg/scan_table.h"

namespace forebay::media::ffmpeg {

// The packets of one stream in decode order, as often as wanted.
class PacketFeed {
 public:
  virtual ~PacketFeed() = default;
  virtual Status Restart() = 0;
  // The next packet, its payload and whether the container calls it a key. false: the end.
  virtual Result<bool> Next(AVPacket* packet) = 0;
};

// From the payloads in the object.
class PayloadFeed : public PacketFeed {
 public:
  PayloadFeed(ObjectReader* object, const VideoIndex* index);
  Status Restart() override {
    next_ = 0;
    return {};
  }
  Result<bool> Next(AVPacket* packet) override;

 private:
  CachedSource source_;
  const VideoIndex* index_;
  std::vector<bool> keys_;  // as claimed: the index's flags change while they are verified
  size_t next_ = 0;
};

// Decodes the stream from its first packet, as any player does, and beside it from each packet that
// may be a sync point with a decoder of its own; keeps the sync flags whose pictures are the same,
// with the number of packets until they are. Sets frames in output order, pts where the container's
// times are not sound, recovery, kLeading, verified. Errors: kDataLoss (no sync point is left), the
// feed's.
Status VerifyByDecoding(PacketFeed* feed, const AVCodecParameters* parameters, StreamScan* scan,
                        ScanReport* report);

// The first half of it: the frames and their order, where the container has no times or wrong ones
// and the sync points are believed.
Status OrderByDecoding(PacketFeed* feed, const AVCodecParameters* parameters, StreamScan* scan,
                       ScanReport* report);

}  // namespace forebay::media::ffmpeg
