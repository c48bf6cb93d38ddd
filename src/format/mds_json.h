// The JSON texts of MDS.
#pragma once

#include "format/mds.h"

namespace forebay::format {

// The columns that a shard's own text describes.
Result<std::vector<MdsColumn>> ParseMdsConfig(std::string_view json, const Place& place);

}  // namespace forebay::format
