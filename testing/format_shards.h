// Shards in memory, what a scan finds in them, and the ways in which they are damaged.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "format/record.h"

namespace forebay::testing {

inline format::Shard ShardOf(const std::string& bytes, std::string name = "shard") {
  return {.name = std::move(name),
          .size = bytes.size(),
          .read = [&bytes](ByteRange range, MutableBytes into) -> Status {
            FB_ASSERT(range.offset <= range.end && range.end <= bytes.size());
            FB_ASSERT(into.size() == range.size() && !range.empty());
            std::memcpy(into.data(), bytes.data() + range.offset, range.size());
            return {};
          }};
}

struct Scanned {
  Status status;
  std::vector<format::FoundRecord> records;
  format::ScanReport report;

  bool HasOddity(std::string_view text) const {
    return std::ranges::any_of(report.first_oddities, [text](const format::Oddity& oddity) {
      return oddity.what.find(text) != std::string::npos;
    });
  }
};

using Scan =
    std::function<Status(const format::Shard&, const format::OnRecord&, format::ScanReport*)>;

// What every scan owes: ranges within the shard, in order, with the checksums of their bytes.
// `of_tables`: a record is a group of rows, and rows are counted.
inline Scanned RunScan(const std::string& bytes, const Scan& scan, bool of_tables = false) {
  Scanned scanned;
  const format::Shard shard = ShardOf(bytes);
  uint64_t before = 0;
  scanned.status = scan(
      shard,
      [&](format::FoundRecord record) -> Status {
        FB_ASSERT(before <= record.range.offset && record.range.offset <= record.range.end &&
                  record.range.end <= bytes.size());
        before = record.range.offset;
        for (const format::FoundField& field : record.fields) {
          FB_ASSERT(record.range.Contains(field.range));
          const std::string_view text =
              std::string_view(bytes).substr(field.range.offset, field.range.size());
          FB_ASSERT(!field.crc32c || *field.crc32c == Crc32c(AsBytes(text)));
        }
        scanned.records.push_back(std::move(record));
        return {};
      },
      &scanned.report);
  FB_ASSERT(of_tables || scanned.report.records == scanned.records.size());
  return scanned;
}

// Every prefix whose length is near one of these places.
inline std::vector<std::string> CutNear(const std::string& bytes,
                                        const std::set<uint64_t>& places) {
  std::vector<std::string> cut;
  for (const uint64_t place : places) {
    for (const uint64_t size : {place - std::min<uint64_t>(place, 1), place, place + 1}) {
      if (size < bytes.size()) cut.push_back(bytes.substr(0, size));
    }
  }
  return cut;
}

inline std::string Flipped(std::string bytes, uint64_t at, int bits = 0x41) {
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ bits);
  return bytes;
}

inline std::string Replaced(std::string bytes, uint64_t at, std::string_view with) {
  return bytes.replace(at, with.size(), with);
}

template <class T>
std::string Number(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace forebay::testing
