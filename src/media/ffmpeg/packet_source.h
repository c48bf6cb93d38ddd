// Packets for the decoder from fetched bytes.
#pragma once

#include <memory>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/stream_decoder.h"

namespace forebay::media::ffmpeg {

// Memory for packets, reused once libavcodec lets go of it.
class PacketMemory {
 public:
  PacketMemory() : packet_(av_packet_alloc()) {}
  // The one packet, empty of what it was, with `size` bytes to fill and zeros behind them. nullptr:
  // no memory.
  AVPacket* Get(size_t size);

 private:
  AvPtr<AVPacket> packet_;
  AvPtr<AVBufferPool> pool_;
  size_t capacity_ = 0;  // of the pool's buffers
};

// Access::kPackets: each packet is one range of the object.
class FetchedPackets : public PacketSource {
 public:
  FetchedPackets(const VideoIndex& index, const FetchedBytes& bytes, PacketMemory& memory)
      : index_(index), bytes_(bytes), memory_(memory) {}
  Result<AVPacket*> Load(uint32_t packet) override;

 private:
  const VideoIndex& index_;
  const FetchedBytes& bytes_;
  PacketMemory& memory_;
};

// Access::kDemux: the run's whole span is demuxed in memory, then each packet is found by its
// place.
class DemuxedPackets : public PacketSource {
 public:
  // kDataLoss when the span does not give the packets that the index promises.
  static Result<std::unique_ptr<DemuxedPackets>> Make(const VideoIndex& index, const DecodeRun& run,
                                                      const FetchedBytes& bytes);
  Result<AVPacket*> Load(uint32_t packet) override;

 private:
  uint32_t first_ = 0;                    // the packet that packets_[0] is
  std::vector<AvPtr<AVPacket>> packets_;  // from the run's first to its last, gaps too
};

}  // namespace forebay::media::ffmpeg
