// ObjectStore for callers that wait (CLI, index builds, tests): posts to the store's executor and
// blocks with a deadline. Thread-safe; not from the executor's own thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/object_store.h"

namespace forebay::store {

class SyncStore {
 public:
  explicit SyncStore(std::shared_ptr<ObjectStore> store) : store_(std::move(store)) {}

  Result<ReadResult> Read(ReadRequest request) const;
  Result<ObjectInfo> Head(std::string key, RequestOptions options = {}) const;
  Result<ListPage> List(ListRequest request) const;
  // Every object under `prefix`, page after page, in the store's order; `visit` returning false
  // ends it.
  Status ListAll(std::string prefix, const std::function<bool(const ObjectInfo&)>& visit,
                 RequestOptions options = {}) const;
  Result<PutResult> Put(PutRequest request) const;
  Status Delete(std::string key, RequestOptions options = {}) const;
  // Multipart above `part_bytes`, parts in parallel, abort on failure.
  Result<PutResult> PutLarge(PutRequest request, uint64_t part_bytes = 16ULL << 20) const;

  ObjectStore& async() const { return *store_; }

 private:
  std::shared_ptr<ObjectStore> store_;
};

}  // namespace forebay::store
