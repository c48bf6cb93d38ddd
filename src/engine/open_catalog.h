// Finds and reads the catalog of a source.
#pragma once

#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "store/sync_store.h"
#include "store/uri.h"

namespace forebay::engine {

// All bytes of an object: one GET of its first MiB tells the size, the rest follows in parallel,
// pinned to the same ETag.
Result<std::vector<std::byte>> ReadWhole(const store::SyncStore& store, const std::string& key,
                                         uint64_t bytes_max);

// `prefix`: the source's key with a final '/' (or ""). Errors: kNotFound with the advice to run
// `forebay index`.
Result<std::shared_ptr<const catalog::Catalog>> ReadCatalog(const store::SyncStore& store,
                                                            const std::string& key);

// s3://bucket/prefix -> its key as a prefix: "" or ending in '/'.
std::string PrefixOf(const store::Uri& source);

}  // namespace forebay::engine
