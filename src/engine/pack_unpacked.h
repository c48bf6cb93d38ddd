// Shards that are compressed as a whole, as sources of a pack: there is no random access to them,
// so each is read and unpacked at once, to be scanned and again to be packed.
#pragma once

#include <memory>
#include <vector>

#include "catalog/files_block.h"
#include "catalog/records_builder.h"
#include "store/sync_store.h"

namespace forebay::engine {

// As `inner`, of what is in compressed shards; those that are not compressed are taken as they are.
catalog::RecordFormat UnpackedFormat(catalog::RecordFormat inner);
// The format of what is in a shard, by its content; "": none that is known.
Result<std::string> FormatWithin(const format::Shard& shard);
// Whether it is compressed so.
Result<bool> IsPackedShard(const format::Shard& shard);
// All of an object of this version, unpacked.
Result<std::shared_ptr<const std::vector<std::byte>>> ReadUnpacked(const store::SyncStore& store,
                                                                   const std::string& prefix,
                                                                   const catalog::FileEntry& entry);

}  // namespace forebay::engine
