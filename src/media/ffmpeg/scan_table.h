// The packet table of each video stream of a container, and the two ways to get it: from the sample
// table of an mp4, or by reading the object once from front to back.
#pragma once

#include "media/ffmpeg/bitstream.h"
#include "media/ffmpeg/scan_io.h"
#include "media/ffmpeg/scan_stream.h"

namespace forebay::media::ffmpeg {

// One stream while it is scanned.
struct StreamScan {
  VideoIndex index;
  BitstreamReader reader{"", ""};
  // Of every packet where the media bytes were read, else only of those looked at: see `read`.
  std::vector<PictureHead> heads;
  std::vector<bool> head_read;
  // Output order as the bitstream gives it (sequence << 32 | picture order count), per packet,
  // where it was read; empty: this codec does not tell.
  std::vector<int64_t> orders;
  // Packets at which the container changes the extradata, with index.parameter_sets's number.
  std::vector<std::pair<uint32_t, uint16_t>> set_changes;
  // kDemux: the packets at which a demux may start; empty: all.
  std::vector<bool> entries;
  // Why the container's word is not enough, so that the stream has to be decoded; empty: it is.
  std::string doubt;
};

// From the tables in `source` and probes of `object`: media bytes are read only if the tables are
// in doubt.
Result<std::vector<VideoIndex>> ScanByTable(ObjectReader* object, SparseSource* source,
                                            const ScanOptions& options, ScanReport* report);

// By reading the object.
Result<std::vector<VideoIndex>> ScanByReading(ObjectReader* object, const ScanOptions& options,
                                              ScanReport* report);

}  // namespace forebay::media::ffmpeg
