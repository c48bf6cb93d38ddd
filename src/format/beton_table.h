// FFCV's files as tables: so many samples are a group, whose numbers lie in their rows and whose
// data anywhere behind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/damage.h"
#include "format/record.h"
#include "format/table_values.h"

namespace forebay::format {

// One column of some samples, which lies in their rows or apart.
struct BetonChunk {
  uint32_t value_bytes = 0;       // 0: they differ in size
  uint64_t row_bytes = 0;         // in rows: from one to the next
  ByteRange range;                // in the shard: spans all of it
  std::vector<ByteRange> places;  // apart: each sample's; none: it lies in their rows

  ByteRange PlaceOf(uint64_t row) const {
    if (!places.empty()) return places[row];
    const uint64_t at = range.offset + row * row_bytes;
    return {at, at + value_bytes};
  }
};

struct BetonGroup {
  uint64_t rows = 0;
  std::vector<BetonChunk> chunks;  // in the order of the record's fields
};

// Each so many samples as a record, whose fields are the columns and whose key is PackBetonGroup's.
// Errors: those of ScanBeton.
Status ScanBetonTable(const Shard& shard, const OnRecord& on_record, ScanReport* report);

std::string PackBetonGroup(const BetonGroup& group);
// `fields`: where the columns lie. Errors: kDataLoss, kUnimplemented (of another version).
Result<BetonGroup> UnpackBetonGroup(std::string_view packed, const std::vector<ByteRange>& fields);

// What is read for rows [first, end): neighbours with what is between them, in order.
std::vector<ByteRange> ReadsOf(const BetonChunk& chunk, uint64_t first, uint64_t end);
TableLayout LayoutOf(const BetonChunk& chunk, uint64_t rows);
// `bytes`: of ReadsOf, one range after the other.
Status DecodeBeton(const BetonChunk& chunk, uint64_t first, uint64_t rows, ByteView bytes,
                   TableValues* out);

}  // namespace forebay::format
