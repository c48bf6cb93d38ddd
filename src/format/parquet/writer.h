// See format/parquet_writer.h.
#pragma once

#include <memory>
#include <vector>

#include "format/parquet_writer.h"

namespace forebay::format::parquet {

// Of columns that have been checked.
Result<std::unique_ptr<ParquetWriter>> MakeWriter(std::vector<ParquetOutputColumn> columns,
                                                  uint64_t bytes);

}  // namespace forebay::format::parquet
