// Objects as files below a folder. A key is a path; the ETag is made of modification time, size
// and inode, and checked before and after every read, so a file that changes under a read is an
// error and never data. Puts are atomic (temporary file, fsync, rename).
//
// Deviations from S3: keys with empty, "." or ".." segments, with NUL, or with a segment over 255
// bytes cannot be files (kInvalidArgument); nor can a key that is a prefix of another up to a '/'.
// Listings show regular files, in byte order; links are followed (when `beneath`, only inside the
// root); what is no file (FIFOs, sockets, dangling links) is named among the page's `skipped`; a
// folder without files is no prefix.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "store/object_store.h"
#include "sys/thread.h"

namespace forebay::store {

struct FileStoreOptions {
  std::string root = "/";  // an existing folder, absolute
  // No key and no symlink leads out of the root.
  bool beneath = false;
  // Whether a put reaches the disk before its callback.
  bool sync_writes = true;
  // Reads go past the page cache: ranges and targets must be multiples of 4 KiB.
  bool direct_reads = false;
};

// `executor` and `pool` must outlive the store, and both must have stopped, or be idle as to it,
// when it is destroyed. Errors: kNotFound, kPermissionDenied (the root).
Result<std::unique_ptr<ObjectStore>> MakeFileStore(Executor* executor, sys::WorkPool* pool,
                                                   const FileStoreOptions& options);

// kInvalidArgument for a key that cannot be a file.
Status CheckFileKey(const std::string& key);

// Whether `name`, the last segment of a path, is one that the store itself uses for files that
// are not whole yet; such names are never objects.
bool IsPartialName(std::string_view name);

}  // namespace forebay::store
