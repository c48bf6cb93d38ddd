// What `forebay index` builds a catalog from, and where that goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/manifest.h"
#include "engine/store_set.h"
#include "forebay/video.h"
#include "store/object_store.h"
#include "store/uri.h"

namespace forebay::engine {

struct IndexTarget {
  std::string uri;
  std::shared_ptr<store::ObjectStore> store;
  std::string key;
};

// What an index is built from, and where it goes.
struct IndexJob {
  std::shared_ptr<StoreSet> stores;
  catalog::DataType type = catalog::DataType::kFolder;
  store::Uri source;
  std::string prefix;  // of all keys; of files: what they are given relative to
  std::shared_ptr<store::ObjectStore> from;
  IndexTarget target;
  std::string source_uri;          // with the prefix
  std::vector<std::string> named;  // of a manifest, relative to the prefix
};

Result<IndexJob> MakeIndexJob(const std::string& source, const StoreOptions& store,
                              const IndexOptions& options);

// A better reason than that there is nothing: the source names one object.
Status ExplainNothing(const IndexJob& job, Status status);

Status StoreCatalog(const IndexTarget& target, const std::vector<std::byte>& bytes);

}  // namespace forebay::engine
