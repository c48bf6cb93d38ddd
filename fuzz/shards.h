// A shard of a target's input, and what comes of tables.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "format/record.h"
#include "format/table_values.h"

namespace forebay::fuzz {

inline format::Shard ShardOf(ByteView input) {
  return {.name = "fuzz",
          .size = input.size(),
          .read = [input](ByteRange range, MutableBytes into) -> Status {
            FB_ASSERT(range.offset <= range.end && range.end <= input.size() &&
                      range.size() == into.size());
            if (!range.empty()) std::memcpy(into.data(), &input[range.offset], range.size());
            return {};
          }};
}

// What a column owes whoever takes rows from it. `value_bytes`: 0 where rows differ in size.
inline void CheckValues(const format::TableValues& values, uint64_t value_bytes, uint64_t rows) {
  FB_ASSERT(values.rows == rows);
  FB_ASSERT(values.valid.empty() || values.valid.size() == rows);
  if (value_bytes > 0) {
    FB_ASSERT(values.offsets.empty() && values.values.size() == rows * value_bytes);
    return;
  }
  FB_ASSERT(values.offsets.size() == rows + 1 && values.offsets[0] == 0 &&
            values.offsets[rows] == values.values.size());
  for (uint64_t row = 0; row < rows; ++row) {
    FB_ASSERT(values.offsets[row] <= values.offsets[row + 1]);
  }
}

// What a scan's records are; of tables a record is a group of rows, and rows are counted.
enum class Scanned : uint8_t { kRecords, kTables, kTablesAmongOneAnother };

// Runs a scan and checks what every scan owes: records in order, their fields within them.
template <class Scan, class Take>
void CheckScan(ByteView input, Scanned what, const Scan& scan, const Take& take) {
  format::ScanReport report;
  uint64_t records = 0;
  uint64_t before = 0;
  const format::OnRecord on_record = [&](const format::FoundRecord& record) -> Status {
    FB_ASSERT(before <= record.range.offset && record.range.offset <= record.range.end &&
              record.range.end <= input.size());
    before = what == Scanned::kTables ? record.range.end : record.range.offset;
    ++records;
    for (const format::FoundField& field : record.fields) {
      FB_ASSERT(record.range.Contains(field.range) && field.range.offset <= field.range.end);
    }
    take(record);
    return {};
  };
  const Status status = scan(ShardOf(input), on_record, &report);
  FB_ASSERT(what == Scanned::kRecords ? report.records == records : report.records >= records);
  FB_ASSERT(status.ok() || status.code() == Code::kDataLoss ||
            status.code() == Code::kUnimplemented);
}

// Where the fields of a record lie.
inline std::vector<ByteRange> RangesOf(const format::FoundRecord& record) {
  std::vector<ByteRange> ranges;
  for (const format::FoundField& field : record.fields) ranges.push_back(field.range);
  return ranges;
}

}  // namespace forebay::fuzz
