// The blocking half of FileStore: one call per operation, on a thread of the pool. Immutable, so
// any number of threads may use one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "store/object_store.h"
#include "sys/fd.h"

namespace forebay::store {

class LocalFiles {
 public:
  static Result<std::unique_ptr<LocalFiles>> Open(const std::string& root, bool beneath,
                                                  bool sync_writes, bool direct_reads);

  Result<ReadResult> Read(const ReadRequest& request, const std::atomic<bool>& cancelled) const;
  Result<ObjectInfo> Head(const std::string& key) const;
  Result<ListPage> List(const ListRequest& request) const;
  Result<PutResult> Put(const PutRequest& request, const std::atomic<bool>& cancelled) const;
  Result<std::string> CreateUpload(const UploadRequest& request) const;
  Result<PutResult> PutPart(const PartRequest& request, const std::atomic<bool>& cancelled) const;
  Result<PutResult> CompleteUpload(const UploadRequest& request) const;
  Result<Unit> AbortUpload(const UploadRequest& request) const;
  Result<Unit> Delete(const std::string& key) const;

 private:
  LocalFiles(sys::Fd root, bool beneath, bool sync_writes, bool direct_reads)
      : root_(std::move(root)),
        beneath_(beneath),
        sync_writes_(sync_writes),
        direct_reads_(direct_reads) {}

  // A file being written under a temporary name, removed unless Commit succeeds.
  class Draft;

  Result<sys::Fd> OpenFile(const std::string& key, sys::Open mode = sys::Open::kRead) const;
  Result<sys::Fd> MakeParent(const std::string& key) const;
  // The folder that holds the parts of an upload; kNotFound when there is none.
  Result<sys::Fd> OpenUpload(const std::string& key, const std::string& upload_id) const;
  Result<PutResult> AppendParts(const UploadRequest& request, const sys::Fd& parts,
                                Draft& draft) const;
  void RemoveUpload(const std::string& key, const std::string& upload_id) const;

  sys::Fd root_;
  bool beneath_;
  bool sync_writes_;
  bool direct_reads_;
};

// mtime, size and inode.
std::string EtagOf(const sys::FileInfo& info);

// One page of the files below `root` (listing.cc).
Result<ListPage> ListFiles(const sys::Fd& root, bool beneath, const ListRequest& request);

}  // namespace forebay::store
