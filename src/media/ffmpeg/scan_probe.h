// Small ranges at the sync packets of a file that is indexed by its sample table.
#pragma once

#include "media/ffmpeg/scan_table.h"

namespace forebay::media::ffmpeg {

// Reads the head of every sync packet (and of some of the packets behind two of them) and compares
// with what the container says. Sets scan->doubt where they disagree, or where heads cannot tell;
// takes the sync flag from packets of an all-sync file that are too many to look at.
Status ProbeHeads(ObjectReader* object, const AVCodecParameters* parameters, StreamScan* scan,
                  ScanReport* report);

// Pixel format and size where the container does not tell: from extradata, else from the first sync
// packet.
Status CompleteParameters(ObjectReader* object, const AVCodecParameters* parameters,
                          StreamScan* scan);

}  // namespace forebay::media::ffmpeg
