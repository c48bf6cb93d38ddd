// How a scan reads its object: counted range reads, two sources of bytes above them (a sparse one
// whose media bytes are zeros, and a cached one for reading it all), and a demuxer over either.
#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "media/media.h"

namespace forebay::media::ffmpeg {

// The object: ReadAt and ReadMany with bounds checked and bytes counted.
class ObjectReader {
 public:
  ObjectReader(const ReadAt& read_at, const ReadMany& read_many, uint64_t size)
      : read_at_(read_at), read_many_(read_many), size_(size) {}
  uint64_t size() const { return size_; }
  uint64_t bytes_wanted() const { return bytes_wanted_; }
  Status Read(uint64_t offset, MutableBytes into);
  Result<std::vector<std::byte>> Fetch(ByteRange range);
  // One buffer per range, fetched together.
  Result<std::vector<std::vector<std::byte>>> FetchMany(const std::vector<ByteRange>& ranges);

 private:
  const ReadAt& read_at_;
  const ReadMany& read_many_;
  uint64_t size_;
  uint64_t bytes_wanted_ = 0;
};

// Bytes by position, as a demuxer or a comparison asks for them.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // As many bytes at `offset` as are at hand, at least one; 0 at or past the end.
  virtual Result<size_t> Read(uint64_t offset, MutableBytes into) = 0;
  // Called before each packet: how many bytes of content the demuxer may take until the next.
  virtual void StartPacket() {}
  // All of `into`; kDataLoss at the end.
  Status ReadFully(uint64_t offset, MutableBytes into);
};

// Known pieces; zeros everywhere else, without end.
class SparseSource : public ByteSource {
 public:
  // Far past every real object, yet so that offsets added to it do not overflow.
  static constexpr uint64_t kSize = uint64_t{1} << 61;
  void Add(uint64_t offset, std::vector<std::byte> bytes);
  // The bytes of `range` if they are known as a whole, else empty.
  ByteView Find(ByteRange range) const;
  uint64_t bytes() const { return bytes_; }

  uint64_t size() const override { return kSize; }
  Result<size_t> Read(uint64_t offset, MutableBytes into) override;
  void StartPacket() override { zeros_left_ = kPacketBytesMax; }

 private:
  // A packet that claims more than this is damage, not video.
  static constexpr uint64_t kPacketBytesMax = 256u << 20;
  std::map<uint64_t, std::vector<std::byte>> pieces_;
  uint64_t bytes_ = 0;
  uint64_t zeros_left_ = kPacketBytesMax;
};

// The object itself, in blocks: what was read lately stays, reading on is read ahead.
class CachedSource : public ByteSource {
 public:
  explicit CachedSource(ObjectReader* object) : object_(object) {}
  uint64_t size() const override { return object_->size(); }
  Result<size_t> Read(uint64_t offset, MutableBytes into) override;

 private:
  // The builder scans 16 objects within 64 MiB.
  static constexpr uint64_t kBlock = 256u << 10;
  static constexpr size_t kBlocksMax = 10;
  static constexpr uint64_t kAheadBlocksMax = 4;
  struct Block {
    uint64_t number = 0;
    std::vector<std::byte> bytes;
  };
  const Block* Find(uint64_t number) const;
  Status Load(uint64_t number);
  ObjectReader* object_;
  std::deque<Block> blocks_;  // oldest first
  uint64_t next_number_ = 0;  // the block after the last one loaded
  uint64_t ahead_ = 1;
};

// Bytes in memory.
class MemorySource : public ByteSource {
 public:
  MemorySource(ByteView front, ByteView back) : front_(front), back_(back) {}
  uint64_t size() const override { return front_.size() + back_.size(); }
  Result<size_t> Read(uint64_t offset, MutableBytes into) override;

 private:
  ByteView front_, back_;
};

// FFmpeg's text for an error of its own.
std::string AvError(int error);

// A libavformat demuxer over a ByteSource.
class Demuxer {
 public:
  struct Options {
    const char* format = nullptr;  // null: probe
    bool seekable = true;
    int flags = 0;  // AVFMT_FLAG_*
    uint32_t probe_bytes = 1u << 20;
  };
  // kInvalidArgument when no demuxer knows the bytes, kDataLoss when they are damaged.
  static Result<std::unique_ptr<Demuxer>> Open(ByteSource* source, const Options& options);
  ~Demuxer();
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  AVFormatContext* context() { return context_; }
  // false at the end. A damaged container ends it too: `damaged` tells.
  Result<bool> Next(AVPacket* packet);
  bool damaged() const { return damaged_; }
  // What the source failed with, if it did: the reason behind an error of FFmpeg's.
  const Status& source_status() const { return source_status_; }

 private:
  explicit Demuxer(ByteSource* source) : source_(source) {}
  Status OpenInput(const Options& options);
  static int ReadPacket(void* self, uint8_t* into, int size);
  static int64_t Seek(void* self, int64_t offset, int whence);
  static int RefuseOther(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                         AVDictionary** options);
  ByteSource* source_;
  Status source_status_;
  uint64_t position_ = 0;
  AVIOContext* io_ = nullptr;
  AVFormatContext* context_ = nullptr;
  bool damaged_ = false;
  bool refused_other_ = false;
};

struct PacketFree {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
using PacketPtr = std::unique_ptr<AVPacket, PacketFree>;

inline ByteView BytesOf(const AVPacket& packet) {
  return {reinterpret_cast<const std::byte*>(packet.data), static_cast<size_t>(packet.size)};
}

}  // namespace forebay::media::ffmpeg
