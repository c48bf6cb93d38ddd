// MosaicML's shards as records of typed columns, held to the index.json beside them.
#pragma once

#include "catalog/records_builder.h"

namespace forebay::engine {

// For one build: what it has read of index files it keeps.
catalog::RecordFormat MdsRecordFormat();
// Of shards that are compressed as a whole.
catalog::RecordFormat CompressedMdsFormat();

}  // namespace forebay::engine
