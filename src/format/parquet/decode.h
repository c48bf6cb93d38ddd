// Values of pages, by Arrow.
#pragma once

#include "format/parquet.h"

namespace forebay::format::parquet {

// As DecodeParquet of format/parquet.h, of pages whose heads have been checked.
Status Decode(const ParquetChunk& chunk, uint64_t rows, uint64_t entries, ByteView bytes,
              TableValues* out);

}  // namespace forebay::format::parquet
