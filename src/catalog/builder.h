// Builds the catalog of a prefix by range reads alone, several objects at a time, within 64 MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "media/media.h"
#include "store/sync_store.h"

namespace forebay::catalog {

struct BuildProgress {
  uint64_t objects_done = 0;
  uint64_t objects_total = 0;
  uint64_t bytes_read = 0;
};

struct BuildOptions {
  media::Verified verify = media::Verified::kHeads;
  uint32_t parallel = 16;  // objects at a time
  // At first a few objects, those that are named like videos before others; where none of them is
  // one, the rest is not read either.
  bool probe = false;
  // Of the objects in the order of their keys those numbered share, share + shares, ...; there may
  // be no video among them.
  uint64_t share = 0;
  uint64_t shares = 1;
  std::function<bool(const BuildProgress&)> on_progress;  // false: stop with kCancelled
};

struct BuildReport {
  uint64_t objects = 0;
  uint64_t objects_failed = 0;   // each with CatalogObject::error
  uint64_t objects_skipped = 0;  // not a video by content, or no object at all (a dangling link)
  uint64_t videos = 0;
  uint64_t frames = 0;
  uint64_t dataset_bytes = 0;
  uint64_t bytes_read = 0;
  uint64_t requests = 0;
  // The same two for the objects whose container has a sample table.
  uint64_t table_dataset_bytes = 0;
  uint64_t table_bytes_read = 0;
  uint64_t index_bytes = 0;  // of the catalog file
  std::string listing;       // what tells whether several machines have listed the same
  std::vector<std::string> warnings;
};

// By the ending of its name.
bool IsNamedLikeVideo(std::string_view key);

// Every object under `prefix` of `store`. Errors: listing failed, no video found, cancelled; a bad
// object is an entry with an error, never a failure of the whole.
Result<CatalogInput> BuildCatalog(const store::SyncStore& store, const std::string& prefix,
                                  const BuildOptions& options, BuildReport* report);

}  // namespace forebay::catalog
