// What of a group of rows is read and decoded together: all of it, or, where it can be cut, a few
// MiB of it. A pure function of the group and of the columns that are wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "format/table.h"

namespace forebay::feed {

struct TablePiece {
  uint32_t group = 0;
  uint64_t first_row = 0;  // of the group
  uint64_t rows = 0;
  std::vector<format::TableRead> reads;  // of each column
  std::vector<Extent> extents;           // that hold them, in order
  uint64_t decoded_bytes = 0;            // about
};

struct TableCutOptions {
  // Decoded, about. Where pages of all columns begin at the same rows, none is read twice.
  uint64_t aligned_bytes = 8ULL << 20;
  // Where they do not, those at a piece's ends are read for both sides.
  uint64_t unaligned_bytes = 64ULL << 20;
};

// `columns` of one group of `rows` rows in object `object`.
std::vector<TablePiece> CutTable(uint32_t group, uint32_t object, uint64_t rows,
                                 const std::vector<format::TableColumn>& columns,
                                 const TableCutOptions& options = {});

}  // namespace forebay::feed
