// What the plan of a table's rows holds, and its decoder. Of TableSamples alone.
#pragma once

#include "feed/table_samples.h"

namespace forebay::feed {

struct TableSamples::Rows {
  size_t piece = 0;
  std::vector<uint64_t> rows;                   // of the row group
  std::shared_ptr<const DecodedPiece> decoded;  // null: it was not yet, when this was planned
};

}  // namespace forebay::feed
