// ScanParquet of format/parquet.h, by Arrow.
#pragma once

#include "format/parquet.h"

namespace forebay::format::parquet {

Status Scan(const Shard& shard, const OnRecord& on_record, ScanReport* report);

}  // namespace forebay::format::parquet
