// UnpackLz4Frame of format/parquet.h, by Arrow.
#pragma once

#include "format/parquet.h"

namespace forebay::format::parquet {

Status UnpackLz4Frame(ByteView packed, MutableBytes into);

}  // namespace forebay::format::parquet
