// A block of a catalog of records: where up to kRecordsPerBlock records lie in their shards, each
// to be had without decoding more than sixteen. Byte table: docs/formats/records.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

struct RecordField {
  uint32_t field = 0;                   // which of the catalog's
  ByteRange range;                      // in the shard: what has to be read for it
  uint64_t bytes = 0;                   // of the field itself
  std::optional<uint32_t> crc32c = {};  // of the bytes of `range`
  bool operator==(const RecordField&) const = default;
};

struct RecordEntry {
  uint32_t shard = 0;
  ByteRange range;  // spans its fields, and framing that is checked when it is read
  std::vector<RecordField> fields;
  bool operator==(const RecordEntry&) const = default;
};

inline constexpr uint32_t kRecordsPerBlock = 1024;

// Records of growing shards, and in a shard of growing offsets. Not empty, and at most
// kRecordsPerBlock; keys.size() == records.size().
std::vector<std::byte> PackRecords(const std::vector<RecordEntry>& records,
                                   const std::vector<std::string>& keys);

// A view of a packed block; the bytes outlive it.
class RecordsBlock {
 public:
  // Its hash is known to be right. Errors: kDataLoss.
  static Result<RecordsBlock> Open(ByteView bytes);

  uint32_t count() const { return count_; }
  // Errors: kDataLoss (bytes that a writer of these never made).
  Result<RecordEntry> At(uint32_t i) const;
  // Appends [first, end), end <= count(), each decoded once.
  Status Read(uint32_t first, uint32_t end, std::vector<RecordEntry>& records) const;
  Result<std::string> KeyOf(uint32_t i) const;

 private:
  class Run;
  uint32_t count_ = 0;
  bool has_keys_ = false;
  std::vector<std::vector<uint32_t>> layouts_;  // field * 2 + whether it has a checksum
  ByteView starts_;
  ByteView records_;
  ByteView keys_;
};

}  // namespace forebay::catalog
