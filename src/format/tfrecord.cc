#include "format/tfrecord.h"

#include <fmt/core.h>

#include "base/crc32c.h"
#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/window.h"

namespace forebay::format {
namespace {

constexpr uint64_t kHeader = 12;  // length and its checksum
constexpr uint64_t kFooter = 4;

Status CheckLength(ByteView header, const Place& place) {
  const uint32_t said = Load<uint32_t>(header, 8);
  const uint32_t is = MaskCrc32c(Crc32c(header.first(8)));
  if (said == is) return {};
  return Damaged(place, fmt::format("a record's length with the checksum {:08x}", is),
                 fmt::format("{:08x}", said));
}

Status BadData(const Place& place, uint32_t said, uint32_t crc) {
  return Damaged(place, fmt::format("data with the checksum {:08x}", said),
                 fmt::format("{:08x}", MaskCrc32c(crc)));
}

// A length may begin as compressed data does; its checksum tells.
Status CheckStart(Window* window) {
  FB_ASSIGN_OR_RETURN(const ByteView head, window->From(0));
  const Place place = window->PlaceAt(0);
  if (head.size() >= kHeader && CheckLength(head, place).ok()) return {};
  return RefuseForeign(head, place);
}

}  // namespace

Result<ByteView> OpenTfRecord(ByteView frame, const Place& place) {
  if (frame.size() < kTfRecordFraming) {
    return Truncated(place, "a record's frame", kTfRecordFraming, frame.size());
  }
  const ByteView data = frame.subspan(kTfRecordHead, frame.size() - kTfRecordFraming);
  FB_RETURN_IF_ERROR(CheckTfRecord(frame.first(kTfRecordHead), {data.size(), Crc32c(data)},
                                   frame.subspan(kTfRecordHead + data.size()), place));
  return data;
}

Status CheckTfRecord(ByteView head, const TfRecordData& data, ByteView tail, const Place& place) {
  FB_RETURN_IF_ERROR(CheckLength(head, place));
  const auto length = Load<uint64_t>(head);
  if (length != data.bytes) {
    return Damaged(place, fmt::format("a record of {} bytes", data.bytes),
                   fmt::format("one of {}", length));
  }
  const auto said = Load<uint32_t>(tail);
  if (said == MaskCrc32c(data.crc32c)) return {};
  return BadData(place + kTfRecordHead, said, data.crc32c);
}

Status ScanTfRecord(const Shard& shard, const TfRecordOptions& options, const OnRecord& on_record,
                    ScanReport* report) {
  Window window(shard, report);
  FB_RETURN_IF_ERROR(CheckStart(&window));
  if (shard.size == 0) report->Note(0, "the shard is empty");
  uint64_t damaged = 0;
  for (uint64_t at = 0; at < shard.size;) {
    const Place place = window.PlaceAt(at);
    const uint64_t left = window.Left(at);
    if (left < kHeader) {
      return CutTail(options.drop_tail, place, "a record's header", kHeader, left, report);
    }
    FB_ASSIGN_OR_RETURN(const ByteView header, window.At(at, kHeader, "a record's header"));
    FB_RETURN_IF_ERROR(CheckLength(header, place));
    const auto length = Load<uint64_t>(header);
    if (length > options.max_record_bytes) {
      return AboveLimit(place, "a record's length", length, options.max_record_bytes);
    }
    const uint64_t size = length + kTfRecordFraming;
    const auto frame = RangeWithin(at, size, shard.size);
    if (!frame) return CutTail(options.drop_tail, place, "a record", size, left, report);
    at = frame->end;
    const ByteRange data{frame->offset + kHeader, frame->end - kFooter};
    FB_ASSIGN_OR_RETURN(const auto crc, window.Crc32cOf(data));
    if (crc) {
      FB_ASSIGN_OR_RETURN(const ByteView footer, window.At(data.end, kFooter, "a record"));
      const auto said = Load<uint32_t>(footer);
      if (said != MaskCrc32c(*crc)) {
        const Status bad = BadData(window.PlaceAt(data.offset), said, *crc);
        if (++damaged > options.max_damaged) return bad;
        report->Note(data.offset, "a record is left out: " + bad.message());
        continue;
      }
    }
    ++report->records;
    FB_RETURN_IF_ERROR(on_record({.key = "",
                                  .range = *frame,
                                  .fields = {{.name = "data", .range = *frame, .bytes = length}}}));
  }
  return {};
}

}  // namespace forebay::format
