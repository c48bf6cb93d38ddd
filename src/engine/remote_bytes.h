// A large catalog in a store: read in ranges when they are asked for, all of one version.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "catalog/files_catalog.h"
#include "engine/store_set.h"
#include "store/object_store.h"
#include "store/uri.h"

namespace forebay::engine {

// Thread-safe. Between its reads it may rest: then it has no store and no thread, so that a process
// may fork, and the next read makes them anew.
class RemoteBytes : public catalog::CatalogBytes {
 public:
  // Reads the object's beginning, and with it its size and ETag. One of at most `whole_bytes` is
  // read whole, and the result is no RemoteBytes. Errors: the store's.
  static Result<std::shared_ptr<const catalog::CatalogBytes>> Open(StoreSet& stores,
                                                                   const store::Uri& uri,
                                                                   uint64_t whole_bytes);
  ~RemoteBytes() override { Rest(); }

  uint64_t size() const override { return size_; }
  void StartRead(ByteRange range, OnRead on_read) const override;
  // What is in flight ends with kCancelled.
  void Rest() const override;

 private:
  struct Read;
  RemoteBytes(StoreOptions options, store::Uri uri)
      : options_(std::move(options)), uri_(std::move(uri)) {}
  Result<store::ObjectStore*> Store() const FB_REQUIRES(mutex_);
  void StartParts(store::ObjectStore& store, const std::shared_ptr<Read>& read) const;
  void OnPart(const std::shared_ptr<Read>& read, Status status) const;

  const StoreOptions options_;
  const store::Uri uri_;
  std::string etag_;
  uint64_t size_ = 0;
  std::vector<std::byte> head_;  // the object's beginning
  mutable Mutex mutex_;
  mutable std::condition_variable_any idle_;
  mutable std::shared_ptr<store::ObjectStore> store_ FB_GUARDED_BY(mutex_);  // null: at rest
  mutable size_t in_flight_ FB_GUARDED_BY(mutex_) = 0;
  mutable std::set<store::ObjectStore::OpId> operations_;  // the store's thread only
};

}  // namespace forebay::engine
