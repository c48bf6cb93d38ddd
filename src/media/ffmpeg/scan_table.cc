#include "media/ffmpeg/scan_table.h"

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <fmt/core.h>

#include <algorithm>

#include "media/ffmpeg/scan_builder.h"
#include "media/ffmpeg/scan_order.h"
#include "media/ffmpeg/scan_probe.h"
#include "media/ffmpeg/verify.h"

namespace forebay::media::ffmpeg {
namespace {

// Packets past the object's end are not there; neither is what comes after them in decode order.
void CutAtEnd(uint64_t object_size, VideoIndex* index) {
  auto& packets = index->packets;
  const auto missing = std::find_if(packets.begin(), packets.end(), [&](const Packet& p) {
    return p.offset > object_size || p.size > object_size - p.offset;
  });
  if (missing == packets.end()) return;
  packets.erase(missing, packets.end());
  index->truncated = true;
}

// A file from its table: probes, and a decode where they leave a doubt.
Result<VideoIndex> FinishTable(ObjectReader* object, AVStream* stream, StreamScan scan,
                               const ScanOptions& options, ScanReport* report) {
  CutAtEnd(object->size(), &scan.index);
  if (scan.index.packets.empty()) return NoSyncPoint(scan.index);
  if (options.verify != Verified::kNone) {
    FB_RETURN_IF_ERROR(ProbeHeads(object, stream->codecpar, &scan, report));
  }
  FB_RETURN_IF_ERROR(CompleteParameters(object, stream->codecpar, &scan));
  if (options.verify == Verified::kNone ||
      (options.verify == Verified::kHeads && scan.doubt.empty())) {
    scan.index.verified = options.verify;
    FramesByTime(&scan, report);
  } else {
    PayloadFeed feed(object, &scan.index);
    FB_RETURN_IF_ERROR(VerifyByDecoding(&feed, stream->codecpar, &scan, report));
  }
  if (scan.index.frames.empty()) return NoSyncPoint(scan.index);
  return std::move(scan.index);
}

}  // namespace

Result<std::vector<VideoIndex>> ScanByTable(ObjectReader* object, SparseSource* source,
                                            const ScanOptions& options, ScanReport* report) {
  FB_ASSIGN_OR_RETURN(
      auto demuxer,
      Demuxer::Open(source, {.format = "mov", .flags = AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN}));
  Results results(report);
  auto builders = MakeBuilders(demuxer->context(), options.frames_max, &results);
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr) return Status(Code::kResourceExhausted, "no memory for a packet");
  while (!builders.empty()) {
    FB_ASSIGN_OR_RETURN(const bool more, demuxer->Next(packet.get()));
    if (!more) break;
    TableBuilder* builder = BuilderOf(&builders, packet->stream_index);
    if (builder == nullptr || packet->pos < 0) continue;
    FB_RETURN_IF_ERROR(builder->Add(*packet, static_cast<uint64_t>(packet->pos)));
  }
  for (TableBuilder& builder : builders) {
    AVStream* stream = demuxer->context()->streams[builder.scan().index.stream];
    FB_RETURN_IF_ERROR(
        results.Add(FinishTable(object, stream, std::move(builder.scan()), options, report),
                    static_cast<unsigned>(stream->index)));
  }
  return results.Take();
}

}  // namespace forebay::media::ffmpeg
