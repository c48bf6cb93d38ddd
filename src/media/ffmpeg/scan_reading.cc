// Containers without a sample table: the object is read once from front to back.
#include <fmt/core.h>

#include <algorithm>

#include "media/ffmpeg/scan_builder.h"
#include "media/ffmpeg/scan_order.h"
#include "media/ffmpeg/verify.h"

namespace forebay::media::ffmpeg {
namespace {

// Where a packet's payload lies in the object: behind AVPacket::pos by a few bytes that are the
// same throughout a container, mostly. Every payload is compared with the object's bytes.
class PayloadFinder {
 public:
  explicit PayloadFinder(CachedSource* source) : source_(source) {}

  // UINT64_MAX: nowhere as a whole.
  Result<uint64_t> Find(const AVPacket& packet) {
    if (packet.pos < 0) return UINT64_MAX;
    const auto position = static_cast<uint64_t>(packet.pos);
    FB_ASSIGN_OR_RETURN(const bool usual, IsAt(position + delta_, packet));
    if (usual) return position + delta_;
    for (uint64_t delta = 0; delta < kDeltaMax; ++delta) {
      FB_ASSIGN_OR_RETURN(const bool here, IsAt(position + delta, packet));
      if (!here) continue;
      delta_ = delta;
      return position + delta;
    }
    return UINT64_MAX;
  }

 private:
  static constexpr uint64_t kDeltaMax = 64;

  Result<bool> IsAt(uint64_t offset, const AVPacket& packet) {
    ByteView left = BytesOf(packet);
    if (offset > source_->size() || left.size() > source_->size() - offset) return false;
    std::byte chunk[4096];
    // A few bytes tell most wrong places.
    for (size_t n = 16; !left.empty(); n = sizeof chunk) {
      FB_ASSIGN_OR_RETURN(const size_t got,
                          source_->Read(offset, MutableBytes(chunk, std::min(n, left.size()))));
      if (got == 0 || std::memcmp(chunk, left.data(), got) != 0) return false;
      offset += got;
      left = left.subspan(got);
    }
    return true;
  }

  CachedSource* source_;
  uint64_t delta_ = 0;
};

// One stream: its table, and what its packets' bytes say.
struct Stream {
  Stream(TableBuilder table, const AVStream* stream, CachedSource* source)
      : builder(std::move(table)), finder(source), order(new OrderReader(stream->codecpar)) {}
  TableBuilder builder;
  PayloadFinder finder;
  std::unique_ptr<OrderReader> order;

  Status Add(const AVPacket& packet) {
    StreamScan& scan = builder.scan();
    FB_ASSIGN_OR_RETURN(const uint64_t offset, finder.Find(packet));
    if (offset == UINT64_MAX) scan.index.access = Access::kDemux;
    const size_t before = scan.index.packets.size();
    FB_RETURN_IF_ERROR(builder.Add(packet, offset));
    if (scan.index.packets.size() == before) return {};
    Packet& p = scan.index.packets.back();
    const PictureHead head = scan.reader.Read(BytesOf(packet));
    if (head.disposable)
      p.flags |= Packet::kDisposable;
    else
      p.flags &= static_cast<uint8_t>(~Packet::kDisposable);
    if (order->understands()) scan.orders.push_back(order->Read(BytesOf(packet), head));
    scan.heads.push_back(head);
    scan.head_read.push_back(true);
    return {};
  }
};

Result<VideoIndex> Finish(ObjectReader* object, const AVStream* stream, StreamScan scan,
                          const ScanOptions& options, ScanReport* report) {
  VideoIndex& index = scan.index;
  if (index.packets.empty()) return NoSyncPoint(index);
  (void)stream;
  (void)object;
  (void)report;
  (void)options;
  FramesByTime(&scan);
  if (index.frames.empty()) return NoSyncPoint(index);
  return std::move(index);
}

}  // namespace

Result<std::vector<VideoIndex>> ScanByReading(ObjectReader* object, const ScanOptions& options,
                                              ScanReport* report) {
  CachedSource source(object);
  FB_ASSIGN_OR_RETURN(auto demuxer, Demuxer::Open(&source, {}));
  AVFormatContext* context = demuxer->context();
  context->probesize = 5 << 20;
  if (avformat_find_stream_info(context, nullptr) < 0 && !demuxer->source_status().ok()) {
    return demuxer->source_status();
  }
  Results results(report);
  std::vector<Stream> streams;
  for (TableBuilder& builder : MakeBuilders(context, options.frames_max, &results)) {
    const AVStream* stream = context->streams[builder.stream()];
    streams.emplace_back(std::move(builder), stream, &source);
  }
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr) return Status(Code::kResourceExhausted, "no memory for a packet");
  while (!streams.empty()) {
    FB_ASSIGN_OR_RETURN(const bool more, demuxer->Next(packet.get()));
    if (!more) break;
    for (Stream& stream : streams) {
      if (stream.builder.stream() == packet->stream_index) {
        FB_RETURN_IF_ERROR(stream.Add(*packet));
      }
    }
  }
  for (Stream& stream : streams) {
    const AVStream* av_stream = context->streams[stream.builder.stream()];
    FB_RETURN_IF_ERROR(
        results.Add(Finish(object, av_stream, std::move(stream.builder.scan()), options, report),
                    static_cast<unsigned>(av_stream->index)));
  }
  return results.Take();
}

}  // namespace forebay::media::ffmpeg
