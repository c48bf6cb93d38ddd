// What the plan of a table's rows holds, and its decoder. Of TableSamples alone.
#pragma once

#include "feed/table_samples.h"

namespace forebay::feed {

// A piece that some of the rows lie in.
struct TableSamples::Part {
  size_t piece = 0;
  uint64_t group_first = 0;  // the sample that is row 0 of its row group, modulo 2^64
  std::shared_ptr<const DecodedPiece> decoded;  // null: it was not yet, when this was planned
};

struct TableSamples::Rows {
  std::vector<Part> parts;
  std::vector<uint32_t> part_of;  // of each row
  std::vector<uint64_t> samples;  // of each row
  bool follow = false;            // each sample is the one behind the one before
};

}  // namespace forebay::feed
