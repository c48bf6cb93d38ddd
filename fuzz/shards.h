// A shard of a target's input, and what comes of tables.
#pragma once

#include <cstring>

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

}  // namespace forebay::fuzz
