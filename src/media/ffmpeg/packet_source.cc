#include "media/ffmpeg/packet_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

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

}  // namespace forebay::media::ffmpeg
