// ObjectStore for callers that wait (CLI, index builds, tests): posts to the store's executor and
// blocks with a deadline. Thread-safe; not from the executor's own thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/object_store.h"
#include "store/parallel_list.h"

namespace forebay::store {

// Requests without a deadline of their own get `default_timeout`. When a deadline passes the
// operation is cancelled, and the call returns once the store has let go of the caller's buffers.
class SyncStore {
 public:
  explicit SyncStore(std::shared_ptr<ObjectStore> store,
                     Duration default_timeout = std::chrono::seconds(60))
      : store_(std::move(store)), default_timeout_(default_timeout) {}

  // For a transfer while `bytes` share the link: bounded by progress (the transport's limits for a
  // first byte and a stall, the attempts of the retry layer), and at last by a deadline far beyond.
  RequestOptions TransferOptions(uint64_t bytes) const;

  Result<ReadResult> Read(ReadRequest request) const;
  // A long range as several reads in parallel, of one version also when none is pinned. Not
  // clamped.
  Status ReadLarge(ReadRequest request, uint64_t part_bytes = 8ULL << 20) const;
  Result<ObjectInfo> Head(std::string key, RequestOptions options = {}) const;
  Result<ListPage> List(ListRequest request) const;
  // Every object under `prefix`, in the order that store/parallel_list.h says; `visit` returning
  // false ends it. A deadline in `options` is for the whole walk; without one, each page gets its
  // own. `on_skip`: told of what is no object, when given.
  Status ListAll(std::string prefix, const std::function<bool(const ObjectInfo&)>& visit,
                 RequestOptions options = {},
                 const std::function<void(const ListSkip&)>& on_skip = nullptr) const;
  Result<PutResult> Put(PutRequest request) const;
  Status Delete(std::string key, RequestOptions options = {}) const;
  Result<std::string> CreateUpload(UploadRequest request) const;
  Result<PutResult> PutPart(PartRequest request) const;
  Result<PutResult> CompleteUpload(UploadRequest request) const;
  Status AbortUpload(UploadRequest request) const;
  // Multipart above `part_bytes` (more where an object needs it), parts in parallel, abort on
  // failure; its conditions hold when it is completed. Without a deadline, each request gets its
  // own.
  Result<PutResult> PutLarge(PutRequest request, uint64_t part_bytes = 16ULL << 20) const;

  // Ends what is in flight, and all that is started later, with kCancelled. Any thread. Copies of
  // this object are one with it; those of Anew are not.
  void CancelAll() const;
  SyncStore Anew() const { return SyncStore(store_, default_timeout_); }

  ObjectStore& async() const { return *store_; }

 private:
  // What is in flight; the executor's thread only.
  struct Active {
    std::set<ObjectStore::OpId> ops;
    std::vector<std::weak_ptr<ParallelList>> lists;
    bool cancelled = false;
  };

  // Starts an operation on the executor and waits for it.
  template <class T, class Request>
  Result<T> Run(Request request,
                ObjectStore::OpId (ObjectStore::*start)(Request, Callback<T>)) const;

  std::shared_ptr<ObjectStore> store_;
  Duration default_timeout_;
  std::shared_ptr<Active> active_ = std::make_shared<Active>();
};

}  // namespace forebay::store
