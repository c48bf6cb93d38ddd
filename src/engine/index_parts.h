// BuildIndex by many machines: each makes a part, beside where the catalog goes; then one merges.
#pragma once

#include <string>

#include "engine/index_job.h"

namespace forebay::engine {

// Stores a part beside where the catalog goes. `report`: its place and size are added.
Status StorePart(const IndexJob& job, const IndexOptions& options,
                 const std::vector<std::byte>& part, IndexReport* report);
// This machine's share of a catalog of records.
Result<IndexReport> BuildIndexPart(const IndexJob& job, const IndexOptions& options,
                                   const std::string& format);

// Where the parts of the catalog at `key` lie: "a/catalog.fbc" -> "a/catalog.parts/".
std::string PartsPrefixOf(const std::string& key);

}  // namespace forebay::engine
