// TFRecord: a length with its checksum, the data, the data's checksum.
#pragma once

#include <cstdint>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

inline constexpr uint64_t kTfRecordHead = 12;  // length and checksum
inline constexpr uint64_t kTfRecordTail = 4;   // the data's checksum
inline constexpr uint64_t kTfRecordFraming = kTfRecordHead + kTfRecordTail;

struct TfRecordOptions {
  static constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

  bool drop_tail = false;    // a cut last record is left out, not an error
  uint64_t max_damaged = 0;  // records whose data fail their checksum are left out, so many
  uint64_t max_record_bytes = kMaxRecordBytes;
};

// A record's one field is "data"; its range is the whole frame, of which OpenTfRecord takes the
// framing off. The length's checksum is always verified, the data's where the scan reads them
// (records of up to Window::kBytes); the frame has no checksum of its own, it carries them.
Status ScanTfRecord(const Shard& shard, const TfRecordOptions& options, const OnRecord& on_record,
                    ScanReport* report);

// The data of a frame, both checksums verified.
Result<ByteView> OpenTfRecord(ByteView frame, const Place& place = {});

// Of a frame's parts: head and tail of their sizes, and what is known of the data between them.
struct TfRecordData {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // not masked
};
Status CheckTfRecord(ByteView head, const TfRecordData& data, ByteView tail, const Place& place);

// TFRecord keeps checksums of bytes that may hold checksums, and so changes them.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace forebay::format
