#include "media/ffmpeg/verify.h"
namespace forebay::media::ffmpeg {
Result<bool> PayloadFeed::Next(AVPacket*) { return false; }
Status VerifyByDecoding(PacketFeed*, const AVCodecParameters*, StreamScan* scan, ScanReport*) {
  return Status(Code::kUnimplemented, "full: " + scan->doubt);
}
}
