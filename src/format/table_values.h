// What is alike in all tables that are kept in groups of rows with each column apart: how large a
// column's part of a group is and where it lies, and what comes of it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/raw_bytes.h"

namespace forebay::format {

// A part of a column that can be read alone, where the file says where such parts lie.
struct TablePage {
  ByteRange range;  // in the shard, its header included
  uint64_t first_row = 0;
  bool operator==(const TablePage&) const = default;
};

// One column's part of one group of rows.
struct TableLayout {
  uint32_t value_bytes = 0;  // of a value that comes out, of a list's element; 0: they differ
  bool list = false;
  uint64_t entries = 0;           // values and nulls; of lists elements, about
  uint64_t uncompressed = 0;      // bytes, about
  bool guessed = false;           // by what is stored: it may be several times as much
  std::vector<ByteRange> ranges;  // in the shard: what is read, in the order of decoding
  std::vector<TablePage> pages;   // of growing rows and offsets, in the one range; none: unknown
  std::vector<uint64_t> starts;   // rows from which on it can be read, from 0 on; none: only whole

  bool ragged() const { return value_bytes == 0 || list; }
  uint64_t stored_bytes() const {
    uint64_t bytes = 0;
    for (const ByteRange& range : ranges) bytes += range.size();
    return bytes;
  }
  // About.
  uint64_t DecodedBytes(uint64_t rows) const {
    return (value_bytes == 0 ? uncompressed : entries * value_bytes) +
           (ragged() ? rows * sizeof(uint64_t) : 0);
  }
};

// What is read of a column for some rows: all that it has, or a part that decodes by itself, of
// pages whole ones with the dictionary first.
struct TableRead {
  std::vector<ByteRange> ranges;
  uint64_t first_row = 0;  // of the group; pages may begin before what is wanted does
  uint64_t rows = 0;
};

// Of some rows of a column: one value for each.
struct TableValues {
  uint64_t rows = 0;
  RawBytes values;                // one after the other; of a null that has a size: zeros
  std::vector<uint64_t> offsets;  // rows + 1, where they differ in size
  std::vector<uint8_t> valid;     // a row's 0: it is null; empty: none is
  uint64_t bytes() const {
    return values.capacity() + offsets.capacity() * sizeof(uint64_t) + valid.capacity();
  }
};

}  // namespace forebay::format
