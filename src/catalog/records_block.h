// A block of a catalog of records: where up to kRecordsPerBlock records lie in their shards, each
// to be had without decoding more than sixteen. Byte table: docs/formats/records.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// A record whose fields lie elsewhere: they outlive it.
struct RecordView {
  uint32_t shard = 0;
  ByteRange range;
  std::span<const RecordField> fields;
  RecordView(uint32_t of, ByteRange spans, std::span<const RecordField> with)
      : shard(of), range(spans), fields(with) {}
  RecordView(const RecordEntry& record)  // NOLINT(google-explicit-constructor)
      : RecordView(record.shard, record.range, record.fields) {}
};

// Many records, in two pieces of memory instead of one for each.
class RecordTable {
 public:
  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  RecordView operator[](size_t i) const {
    const Place& place = places_[i];
    return {place.shard, place.range,
            std::span(fields_).subspan(place.first_field, place.field_count)};
  }
  void Reserve(size_t records) {
    places_.reserve(records);
    fields_.reserve(records);
  }
  void Append(const RecordView& record) {
    places_.push_back(
        {record.shard, static_cast<uint32_t>(record.fields.size()), fields_.size(), record.range});
    fields_.insert(fields_.end(), record.fields.begin(), record.fields.end());
  }

 private:
  struct Place {
    uint32_t shard = 0;
    uint32_t field_count = 0;
    size_t first_field = 0;
    ByteRange range;
  };
  std::vector<Place> places_;
  std::vector<RecordField> fields_;
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
  Status Read(uint32_t first, uint32_t end, RecordTable& records) const;
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
