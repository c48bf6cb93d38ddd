// Builds the catalog of plain objects from one listing. No object is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catalog/files_catalog.h"
#include "store/sync_store.h"

namespace forebay::catalog {

struct FilesOptions {
  std::string source_uri;  // the root of the keys, with a final '/'
  KeyOrder order = KeyOrder::kBytes;
  const FilesCatalog* append_to = nullptr;            // its order counts
  std::function<bool(uint64_t objects)> on_progress;  // false: stop with kCancelled
};

struct FilesReport {
  uint64_t objects = 0;  // listed, those left out included
  uint64_t skipped = 0;  // no object at all (a dangling link)
  uint64_t added = 0;    // to what was there before
  uint64_t dataset_bytes = 0;
  std::vector<std::string> warnings;
};

// The file's bytes; empty when there is nothing to append. Errors: kNotFound (no object),
// kCancelled, kPreconditionFailed (appending: an object of the catalog has changed or is gone, by
// its key), and the store's.
Result<std::vector<std::byte>> BuildFiles(const store::SyncStore& store, const std::string& prefix,
                                          const FilesOptions& options, FilesReport* report);

// What is listed: all that begins so, below a root that keys are given relative to.
struct FilesPrefix {
  std::string prefix;
  size_t root_bytes = 0;  // of `prefix`
};
Result<std::vector<std::byte>> BuildFiles(const store::SyncStore& store, const FilesPrefix& prefix,
                                          const FilesOptions& options, FilesReport* report);

// The same of objects that are named, in this order, whatever `options` says of it: each is asked
// for its size and ETag. Errors: kNotFound for one that is not there.
Result<std::vector<std::byte>> BuildNamedFiles(const store::SyncStore& store,
                                               const std::string& root,
                                               const std::vector<std::string>& keys,
                                               const FilesOptions& options, FilesReport* report);

}  // namespace forebay::catalog
