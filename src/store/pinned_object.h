// One version of an object, read in ranges by a caller that waits.
#pragma once

#include <vector>

#include "store/sync_store.h"

namespace forebay::store {

// Not for several threads at once. Every read carries the version's ETag: kPreconditionFailed when
// the object has changed.
class PinnedObject {
 public:
  // Each range ends, well or not, within `timeout`. `store` must outlive this.
  PinnedObject(const SyncStore& store, ObjectInfo info, Priority priority, Duration timeout)
      : store_(store), info_(std::move(info)), priority_(priority), timeout_(timeout) {}

  const ObjectInfo& info() const { return info_; }
  uint64_t requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }

  // All ranges in parallel, into[i] for ranges[i]; the first error counts.
  Status ReadMany(const std::vector<ByteRange>& ranges, const std::vector<MutableBytes>& into);
  Status Read(ByteRange range, MutableBytes into) { return ReadMany({range}, {into}); }

 private:
  const SyncStore& store_;
  const ObjectInfo info_;
  const Priority priority_;
  const Duration timeout_;
  uint64_t requests_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace forebay::store
