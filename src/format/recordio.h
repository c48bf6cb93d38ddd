// RecordIO: frames of a magic number, a word of flag and length, data padded to four bytes. What
// MXNet (dmlc) and SageMaker write; they disagree on records of several parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

inline constexpr uint32_t kRecordIoMagic = 0xced7230a;

struct RecordIoOptions {
  // How the parts of a record are joined; nothing in the file says which.
  enum class Multipart : uint8_t {
    kMxnet,      // the magic number, at which it was cut, goes back between them
    kSageMaker,  // nothing goes between them
  };
  enum class Payload : uint8_t {
    kRaw,    // field "data"
    kImage,  // fields "image", "label", "id": MXNet's image records
  };
  static constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMaxParts = uint64_t{1} << 20;

  Multipart multipart = Multipart::kMxnet;
  Payload payload = Payload::kRaw;
  // What SageMaker makes of an augmented manifest: each attribute of a sample is a record of its
  // own, in this order. A sample's fields have these names; with them the payload is kRaw.
  std::vector<std::string> attributes = {};
  bool drop_tail = false;  // a cut last record (or sample) is left out, not an error
  uint64_t max_record_bytes = kMaxRecordBytes;
  uint64_t max_parts = kMaxParts;
};

// A record's range is all its frames. Of a record of one part the fields' ranges are their bytes,
// with nothing to take off; of one of several parts each field's range is the record's, to be
// opened by OpenRecordIo (and OpenImageRecord). The key of an image record is its id.
Status ScanRecordIo(const Shard& shard, const RecordIoOptions& options, const OnRecord& on_record,
                    ScanReport* report);

// The payload of a record: a view of `frames`, or where there are several parts of `scratch`.
Result<ByteView> OpenRecordIo(ByteView frames, RecordIoOptions::Multipart multipart,
                              std::vector<std::byte>* scratch, const Place& place = {});

// The payload of MXNet's image records.
struct ImageRecord {
  uint64_t id = 0;
  uint64_t id2 = 0;
  ByteView id_bytes;
  ByteView labels;  // float32, at any address; at least one
  ByteView image;   // as it was encoded
};
Result<ImageRecord> OpenImageRecord(ByteView payload, const Place& place = {});

// An .idx file: lines of key, tab, offset.
struct RecordIoPlace {
  std::string key;
  uint64_t offset = 0;
  auto operator<=>(const RecordIoPlace&) const = default;
};
// In the order of their offsets, each of which is that of a possible frame in a shard of this size.
Result<std::vector<RecordIoPlace>> ParseRecordIoIndex(std::string_view text, uint64_t shard_size,
                                                      const Place& place = {});

}  // namespace forebay::format
