// Finds and reads the catalog of a source.
#pragma once

#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "catalog/files_catalog.h"
#include "catalog/manifest.h"
#include "catalog/records_catalog.h"
#include "engine/store_set.h"
#include "store/sync_store.h"
#include "store/uri.h"

namespace forebay::engine {

// All bytes of an object: one GET of its first MiB tells the size, the rest follows in parallel,
// pinned to the same ETag.
Result<std::vector<std::byte>> ReadWhole(const store::SyncStore& store, const std::string& key,
                                         uint64_t bytes_max);

// Errors: kNotFound with the advice to run `forebay index`; kDataLoss for a damaged one.
Result<std::shared_ptr<const catalog::Catalog>> ReadCatalog(const store::SyncStore& store,
                                                            const std::string& key);

// The catalog at URI `catalog`, or, where that is "", the first there is of
// SOURCE/.forebay/catalog.fbc and ~/.cache/forebay/<sha256 of SOURCE>.
Result<std::shared_ptr<const catalog::Catalog>> OpenCatalog(StoreSet& stores,
                                                            const std::string& source,
                                                            const std::string& catalog);

// The same of plain objects; what names them is of `type`.
Result<std::shared_ptr<const catalog::FilesCatalog>> OpenFilesCatalog(
    StoreSet& stores, const std::string& source, const std::string& catalog,
    catalog::DataType type = catalog::DataType::kFolder);
Result<std::shared_ptr<const catalog::FilesCatalog>> ReadFilesCatalog(StoreSet& stores,
                                                                      const store::Uri& uri);

// The same of records.
Result<std::shared_ptr<const catalog::RecordsCatalog>> OpenRecordsCatalog(
    StoreSet& stores, const std::string& source, const std::string& catalog);
Result<std::shared_ptr<const catalog::RecordsCatalog>> ReadRecordsCatalog(StoreSet& stores,
                                                                          const store::Uri& uri);

// The file of the second place; "" where there is no home folder. `source` counts without its final
// slashes.
std::string LocalCatalogPath(const std::string& source);

// Where the catalog of `source` lies unless told otherwise: in the folder that it is, or, as
// DIR/.forebay/NAME.fbc, beside the manifest or prefix.
std::string CatalogKeyOf(const store::Uri& source, catalog::DataType type);

// s3://bucket/prefix -> its key as a prefix: "" or ending in '/'.
std::string PrefixOf(const store::Uri& source);

}  // namespace forebay::engine
