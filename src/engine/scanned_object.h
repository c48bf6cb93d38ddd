// An object opened by URI, to be indexed as a video on the spot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/store_set.h"
#include "media/media.h"
#include "store/pinned_object.h"
#include "store/sync_store.h"

namespace forebay::engine {

class ScannedObject {
 public:
  // One HEAD: the version that every later read is of.
  static Result<std::unique_ptr<ScannedObject>> Open(const std::string& uri,
                                                     const StoreOptions& options);

  // `verify`: "none", "heads" or "full". Errors: as ScanVideo, with the uri.
  Result<std::vector<media::VideoIndex>> Scan(const std::string& verify);

  const std::string& uri() const { return uri_; }
  const store::SyncStore& store() const { return store_; }
  store::PinnedObject& object() { return *object_; }
  const media::ScanReport& report() const { return report_; }

 private:
  ScannedObject(std::shared_ptr<StoreSet> set, store::SyncStore store)
      : set_(std::move(set)), store_(std::move(store)) {}

  const std::shared_ptr<StoreSet> set_;
  const store::SyncStore store_;
  std::string uri_;
  std::unique_ptr<store::PinnedObject> object_;
  media::ScanReport report_;
};

}  // namespace forebay::engine
