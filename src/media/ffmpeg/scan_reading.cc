// Containers without a sample table: the object is read once from front to back.
#include <fmt/core.h>

#include <algorithm>

#include "media/ffmpeg/scan_builder.h"
#include "media/ffmpeg/scan_order.h"
#include "media/ffmpeg/scan_spans.h"
#include "media/ffmpeg/verify.h"

namespace forebay::media::ffmpeg {
namespace {

// libavformat takes a sequence of JPEG pictures for one; the demuxer for many has to be named.
const char* RawFormat(CachedSource* source) {
  std::byte start[3] = {};
  if (!source->ReadFully(0, start).ok()) return nullptr;
  const bool jpeg =
      start[0] == std::byte{0xff} && start[1] == std::byte{0xd8} && start[2] == std::byte{0xff};
  return jpeg ? "mjpeg" : nullptr;
}

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

// The object opened and looked into: streams, extradata, pixel formats.
Result<std::unique_ptr<Demuxer>> OpenByReading(CachedSource* source) {
  FB_ASSIGN_OR_RETURN(auto demuxer, Demuxer::Open(source, {.format = RawFormat(source)}));
  AVFormatContext* context = demuxer->context();
  if (std::string_view(context->iformat->name).ends_with("_pipe")) {
    return Status(Code::kInvalidArgument, "a picture, not a video");
  }
  context->probesize = 5 << 20;
  source->StartPacket();
  if (avformat_find_stream_info(context, nullptr) < 0 && !demuxer->source_status().ok()) {
    return demuxer->source_status();
  }
  return demuxer;
}

// The packets of a stream by demuxing the object again.
class DemuxFeed : public PacketFeed {
 public:
  DemuxFeed(ObjectReader* object, uint32_t stream) : object_(object), stream_(stream) {}

  Status Restart() override {
    demuxer_.reset();
    source_ = std::make_unique<CachedSource>(object_);
    FB_ASSIGN_OR_RETURN(demuxer_, OpenByReading(source_.get()));
    AVFormatContext* context = demuxer_->context();
    for (unsigned i = 0; i < context->nb_streams; ++i) {
      context->streams[i]->discard = i == stream_ ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
    return {};
  }

  Result<bool> Next(AVPacket* packet) override {
    for (;;) {
      FB_ASSIGN_OR_RETURN(const bool more, demuxer_->Next(packet));
      if (!more) return false;
      if (packet->stream_index == static_cast<int>(stream_) && packet->size > 0) return true;
    }
  }

 private:
  ObjectReader* object_;
  uint32_t stream_;
  std::unique_ptr<CachedSource> source_;
  std::unique_ptr<Demuxer> demuxer_;
};

// One stream: its table, and what its packets' bytes say.
class Stream {
 public:
  Stream(TableBuilder table, const AVStream* stream, CachedSource* source)
      : builder_(std::move(table)),
        finder_(source),
        order_(std::make_unique<OrderReader>(stream->codecpar)) {
    sets_ = std::make_unique<SetTracker>(&scan());
  }
  int number() const { return builder_.stream(); }

  Status Add(const AVPacket& packet) {
    FB_ASSIGN_OR_RETURN(const uint64_t offset, finder_.Find(packet));
    if (offset == UINT64_MAX) scan().index.access = Access::kDemux;
    const size_t before = scan().index.packets.size();
    FB_RETURN_IF_ERROR(builder_.Add(packet, offset));
    if (scan().index.packets.size() == before) return {};
    last_damaged_ = (packet.flags & AV_PKT_FLAG_CORRUPT) != 0;
    demuxed_.push_back(
        {packet.pos, static_cast<uint32_t>(packet.size), HashOfPayload(BytesOf(packet))});
    return ReadHead(packet);
  }

  Result<VideoIndex> Finish(ObjectReader* object, const AVStream* stream,
                            const ScanOptions& options, ScanReport* report) {
    VideoIndex& index = scan().index;
    if (last_damaged_) DropLast();
    if (index.packets.empty()) return NoSyncPoint(index);
    if (index.container == "mjpeg" && index.packets.size() == 1) {
      return Status(Code::kInvalidArgument, "a picture, not a video");
    }
    MarkLeading();
    if (lossy_) NothingIsDisposable(&index);
    if (index.access == Access::kDemux) {
      SetEntries();
      FB_RETURN_IF_ERROR(FindSpans(object, demuxed_, &scan().entries, &index, report));
    }
    const bool sound = TimesAreSound(scan());
    const bool doubted = options.verify != Verified::kNone && (untold_ || !doubt_.empty());
    if (options.verify != Verified::kFull && !doubted && sound) {
      index.verified = options.verify;
      for (uint32_t i = 0; i < index.packets.size(); ++i) {
        if (!scan().heads[i].shown) index.packets[i].pts = kNoPts;
      }
      FramesByTime(&scan(), report);
    } else {
      const auto feed = MakeFeed(object);
      if (options.verify == Verified::kFull || doubted) {
        if (!doubt_.empty())
          report->warnings.push_back(fmt::format("stream {}: {}", index.stream, doubt_));
        FB_RETURN_IF_ERROR(VerifyByDecoding(feed.get(), stream->codecpar, &scan(), report));
      } else {
        index.verified = options.verify;
        FB_RETURN_IF_ERROR(OrderByDecoding(feed.get(), stream->codecpar, &scan(), report));
      }
    }
    if (index.frames.empty()) return NoSyncPoint(index);
    return std::move(index);
  }

 private:
  StreamScan& scan() { return builder_.scan(); }

  std::unique_ptr<PacketFeed> MakeFeed(ObjectReader* object) {
    if (scan().index.access == Access::kDemux) {
      return std::make_unique<DemuxFeed>(object, scan().index.stream);
    }
    return std::make_unique<PayloadFeed>(object, &scan().index);
  }

  Status ReadHead(const AVPacket& packet) {
    const auto i = static_cast<uint32_t>(scan().index.packets.size() - 1);
    Packet& p = scan().index.packets[i];
    std::vector<ParameterSet> sets;
    PictureHead head = scan().reader.Read(BytesOf(packet), &sets);
    p.flags &= static_cast<uint8_t>(~Packet::kDisposable);
    if (head.disposable) p.flags |= Packet::kDisposable;
    if (order_->understands()) {
      scan().orders.push_back(order_->Read(BytesOf(packet), head));
      head.field = order_->is_field();
    }
    lossy_ = numbers_.Gap(head, scan().reader.frame_num_end()) || lossy_;
    SetKey(head, i);
    scan().heads.push_back(head);
    scan().head_read.push_back(true);
    return sets_->Add(i, sets, (p.flags & Packet::kKey) != 0);
  }

  // The bytes are at hand, so they have the word.
  void SetKey(const PictureHead& head, uint32_t i) {
    Packet& p = scan().index.packets[i];
    const bool claimed = (p.flags & Packet::kKey) != 0;
    switch (head.sync) {
      case Sync::kClosed:
      case Sync::kOpen:
        p.flags |= Packet::kKey;
        return;
      case Sync::kUnknown:
        untold_ = true;
        return;
      default:
        p.flags &= static_cast<uint8_t>(~Packet::kKey);
        if (claimed && doubt_.empty()) {
          doubt_ = fmt::format("packet {} is marked as a sync point, its bytes do not prove it", i);
        }
    }
  }

  // Everything that may turn out to be a sync point.
  void SetEntries() {
    const auto& packets = scan().index.packets;
    for (size_t i = 0; i < packets.size(); ++i) {
      const Sync sync = scan().heads[i].sync;
      const bool key = (packets[i].flags & Packet::kKey) != 0;
      scan().entries.push_back(key || sync == Sync::kGradual || sync == Sync::kIntra);
    }
  }

  // The object ends inside the last packet.
  void DropLast() {
    scan().index.packets.pop_back();
    scan().heads.pop_back();
    scan().head_read.pop_back();
    if (!scan().orders.empty()) scan().orders.pop_back();
    demuxed_.pop_back();
    scan().index.truncated = true;
  }

  // HEVC tells which pictures around a sync point can be decoded from it, and which never come out.
  void MarkLeading() {
    auto& packets = scan().index.packets;
    bool skips = true;  // at the start, and behind an end of sequence or a broken link
    bool seen = false;
    for (uint32_t i = 0; i < packets.size(); ++i) {
      PictureHead& head = scan().heads[i];
      if ((packets[i].flags & Packet::kKey) != 0) {
        skips = !seen || head.broken_link || ended_;
        seen = true;
        ended_ = false;
      }
      if (head.leading == Leading::kDecodable) packets[i].flags |= Packet::kLeading;
      if (head.leading == Leading::kSkipped && skips) head.shown = false;
      if (head.ends_sequence) ended_ = true;
    }
  }

  TableBuilder builder_;
  PayloadFinder finder_;
  std::unique_ptr<OrderReader> order_;
  std::unique_ptr<SetTracker> sets_;
  std::vector<DemuxedPacket> demuxed_;
  FrameNumbers numbers_;
  bool lossy_ = false;
  std::string doubt_;    // why the container's word is not enough
  bool untold_ = false;  // the codec's sync points cannot be told by their first bytes
  bool ended_ = false;
  bool last_damaged_ = false;
};

}  // namespace

Result<std::vector<VideoIndex>> ScanByReading(ObjectReader* object, const ScanOptions& options,
                                              ScanReport* report) {
  CachedSource source(object);
  FB_ASSIGN_OR_RETURN(auto demuxer, OpenByReading(&source));
  AVFormatContext* context = demuxer->context();
  Results results(report);
  std::vector<std::unique_ptr<Stream>> streams;
  for (TableBuilder& builder : MakeBuilders(context, options.frames_max, &results)) {
    const AVStream* stream = context->streams[builder.stream()];
    streams.push_back(std::make_unique<Stream>(std::move(builder), stream, &source));
  }
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr) return Status(Code::kResourceExhausted, "no memory for a packet");
  while (!streams.empty()) {
    FB_ASSIGN_OR_RETURN(const bool more, demuxer->Next(packet.get()));
    if (!more) break;
    for (const auto& stream : streams) {
      if (stream->number() == packet->stream_index) FB_RETURN_IF_ERROR(stream->Add(*packet));
    }
  }
  for (const auto& stream : streams) {
    const AVStream* av_stream = context->streams[stream->number()];
    FB_RETURN_IF_ERROR(results.Add(stream->Finish(object, av_stream, options, report),
                                   static_cast<unsigned>(stream->number())));
  }
  return results.Take();
}

}  // namespace forebay::media::ffmpeg
