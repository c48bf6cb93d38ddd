// The JSON texts of MDS.
#pragma once

#include "format/mds.h"

namespace forebay::format {

// The columns that a shard's own text describes.
Result<std::vector<MdsColumn>> ParseMdsConfig(std::string_view json, const Place& place);
// Such a text, as MosaicML's writer makes it. What is no UTF-8 in a name is replaced.
std::string MdsConfigText(const std::vector<MdsColumn>& columns);

}  // namespace forebay::format
