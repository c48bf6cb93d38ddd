// Where the bytes lie that a demuxer has to see for each packet, in containers that do not hold
// packets as contiguous bytes (MPEG-TS, MPEG-PS, laced or compressed Matroska).
#pragma once

#include "media/ffmpeg/scan_table.h"

namespace forebay::media::ffmpeg {

// A packet as the demuxer gave it when the object was read: what a later demux has to give again.
struct DemuxedPacket {
  int64_t position = -1;  // AVPacket::pos
  uint32_t size = 0;
  uint64_t hash = 0;
};
uint64_t HashOfPayload(ByteView payload);

// Sets offset and size of the packets to their spans, payload_sizes and demux_header. `entries` are
// the packets at which runs may want to start; those from which a demux does not give the same
// packets again are taken out of it, and lose their sync flag. The index's packets are those of
// `demuxed`. Errors: kUnimplemented (a container that is not known how to enter), ReadAt's.
Status FindSpans(ObjectReader* object, const std::vector<DemuxedPacket>& demuxed,
                 std::vector<bool>* entries, VideoIndex* index, ScanReport* report);

}  // namespace forebay::media::ffmpeg
