#include "media/ffmpeg/packet_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "media/ffmpeg/demux_range.h"

namespace forebay::media::ffmpeg {

AVPacket* PacketMemory::Get(size_t size) {
  if (packet_ == nullptr || size > INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE) return nullptr;
  av_packet_unref(packet_.get());
  const size_t needed = size + AV_INPUT_BUFFER_PADDING_SIZE;
  if (needed > capacity_) {
    constexpr size_t kLeast = 64u << 10;
    capacity_ = std::max(std::bit_ceil(needed), kLeast);
    pool_.reset(av_buffer_pool_init(capacity_, nullptr));
  }
  if (pool_ == nullptr) return nullptr;
  packet_->buf = av_buffer_pool_get(pool_.get());
  if (packet_->buf == nullptr) return nullptr;
  packet_->data = packet_->buf->data;
  packet_->size = static_cast<int>(size);
  std::memset(packet_->data + size, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  return packet_.get();
}

Result<AVPacket*> FetchedPackets::Load(uint32_t packet) {
  const Packet& p = index_.packets[packet];
  AVPacket* av = memory_.Get(p.size);
  if (av == nullptr) {
    return Status(Code::kResourceExhausted,
                  fmt::format("no memory for packet {} of {} bytes", packet, p.size));
  }
  FB_RETURN_IF_ERROR(
      bytes_
          .Copy({.offset = p.offset, .end = p.offset + p.size},
                {reinterpret_cast<std::byte*>(av->data), static_cast<size_t>(p.size)})
          .WithContext(fmt::format("packet {}", packet)));
  return av;
}

namespace {

// Keeps the packets from `first` to `last` of those that come in turn from packet `next` on.
class Collector {
 public:
  Collector(const VideoIndex& index, uint32_t next, uint32_t first, uint32_t last)
      : index_(index), start_(next), next_(next), first_(first), last_(last) {}

  bool Take(const AVPacket& packet) {
    const uint32_t size = index_.payload_sizes[next_];
    const auto got = static_cast<uint32_t>(packet.size);
    // Foreign bytes may stand in front of the first.
    if (got < size || (got > size && next_ != start_)) {
      status_ = Status(Code::kDataLoss,
                       fmt::format("packet {} has {} bytes as demuxed, not {}", next_, got, size));
      return false;
    }
    if (next_ >= first_) {
      AvPtr<AVPacket> kept(av_packet_clone(&packet));
      if (kept == nullptr) {
        status_ = Status(Code::kResourceExhausted, "no memory for a packet");
        return false;
      }
      kept->data += got - size;
      kept->size = static_cast<int>(size);
      av_packet_free_side_data(kept.get());
      packets_.push_back(std::move(kept));
    }
    return ++next_ <= last_;
  }

  Result<std::vector<AvPtr<AVPacket>>> Finish() {
    if (!status_.ok()) return status_;
    if (next_ <= last_) {
      return Status(Code::kDataLoss,
                    fmt::format("packet {} does not come out of the bytes from {} on", next_,
                                index_.packets[first_].offset));
    }
    return std::move(packets_);
  }

 private:
  const VideoIndex& index_;
  const uint32_t start_;
  uint32_t next_, first_, last_;
  Status status_;
  std::vector<AvPtr<AVPacket>> packets_;
};

}  // namespace

Result<std::unique_ptr<DemuxedPackets>> DemuxedPackets::Make(const VideoIndex& index,
                                                             const DecodeRun& run,
                                                             const FetchedBytes& bytes) {
  const uint32_t first = run.packets.front(), last = run.packets.back();
  if (index.payload_sizes.size() != index.packets.size()) {
    return Status(Code::kDataLoss, "the index is damaged: payload sizes are missing");
  }
  const std::vector<ByteRange> spans = RangesOf(index, {run}, 0);
  if (spans.size() != 1) return Status(Code::kDataLoss, "the index is damaged: empty packets");
  std::vector<std::byte> range(spans[0].size());
  FB_RETURN_IF_ERROR(bytes.Copy(spans[0], range));
  // Packets that begin in one unit of the container come together.
  uint32_t next = first;
  while (next > 0 && index.packets[next - 1].offset == index.packets[first].offset) --next;
  Collector collector(index, next, first, last);
  FB_RETURN_IF_ERROR(DemuxRange(
      index, range, [&collector](const AVPacket& packet) { return collector.Take(packet); }));
  std::unique_ptr<DemuxedPackets> source(new DemuxedPackets);
  source->first_ = first;
  FB_ASSIGN_OR_RETURN(source->packets_, collector.Finish());
  return source;
}

Result<AVPacket*> DemuxedPackets::Load(uint32_t packet) {
  if (packet < first_ || packet - first_ >= packets_.size()) {
    return Status(Code::kInternal, "a packet outside its run");
  }
  return packets_[packet - first_].get();
}

}  // namespace forebay::media::ffmpeg
