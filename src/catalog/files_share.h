// A host's share of a catalog, as SageMaker's ShardedByS3Key hands keys out: in turn.
#pragma once

#include <cstdint>
#include <memory>

#include "catalog/files_catalog.h"

namespace forebay::catalog {

// Objects host, host + hosts, host + 2 * hosts, ... of `catalog`, as a catalog. Errors:
// kInvalidArgument (host not in [0, hosts), or there is no object for it).
Result<std::shared_ptr<const FilesCatalog>> ShareOf(std::shared_ptr<const FilesCatalog> catalog,
                                                    uint64_t host, uint64_t hosts);

}  // namespace forebay::catalog
