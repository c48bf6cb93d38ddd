#include "media/ffmpeg/scan.h"

#include <fmt/core.h>

#include <algorithm>

#include "media/ffmpeg/scan_mp4.h"
#include "media/ffmpeg/scan_table.h"

namespace forebay::media::ffmpeg {
namespace {

// Enough for the boxes in front of moov, or of mdat, and for FFmpeg to tell formats apart; more is
// read where it is needed.
constexpr uint64_t kHeadBytes = 4096;

Result<std::vector<VideoIndex>> ScanObject(ObjectReader* object, const ScanOptions& options,
                                           ScanReport* report) {
  if (object->size() == 0) return Status(Code::kInvalidArgument, "an empty object");
  FB_ASSIGN_OR_RETURN(auto head, object->Fetch({0, std::min(kHeadBytes, object->size())}));
  if (!LooksLikeMp4(head)) return ScanByReading(object, options, report);
  report->had_sample_table = true;
  FB_ASSIGN_OR_RETURN(SparseSource source, MapMp4(object, std::move(head), options.frames_max));
  return ScanByTable(object, &source, options, report);
}

}  // namespace

Result<std::vector<VideoIndex>> Scan(const ReadAt& read_at, uint64_t object_size,
                                     const ScanOptions& options, ScanReport* report) {
  ScanReport unwanted;
  if (report == nullptr) report = &unwanted;
  *report = {};
  ObjectReader object(read_at, options.read_many, object_size);
  auto indexes = ScanObject(&object, options, report);
  report->bytes_wanted = object.bytes_wanted();
  return indexes;
}

}  // namespace forebay::media::ffmpeg
