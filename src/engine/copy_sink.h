// Where one object of a copy goes: a file that appears when it is whole, or a store's put or
// multipart upload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "engine/part_file.h"
#include "store/sync_store.h"

namespace forebay::engine {

// Of all parts of one copy together, which share its link; a longer part goes alone.
inline constexpr uint64_t kCopyBytesInFlight = 256ULL << 20;

// Write from any thread, for different parts at the same time; the rest from one.
class CopySink {
 public:
  virtual ~CopySink() = default;
  // Whether the destination is a whole copy of this version already.
  virtual bool already_there() const { return false; }
  virtual uint64_t part_count() const = 0;
  virtual ByteRange part(uint64_t index) const = 0;
  // Written by an earlier run.
  virtual bool done(uint64_t /*index*/) const { return false; }
  virtual Status Write(uint64_t index, ByteView bytes, store::WriteProgress* progress) = 0;
  // All parts are written.
  virtual Status Finish() = 0;
  // Some are not, and will not be.
  virtual void Abandon() {}
};

// Makes the sink of each object below one destination.
class CopyDestination {
 public:
  virtual ~CopyDestination() = default;
  // `name`: what follows the destination's own prefix, as a key. Blocking; one thread.
  // Errors: kInvalidArgument (the destination cannot hold such a key).
  virtual Result<std::unique_ptr<CopySink>> Begin(const std::string& name,
                                                  const PartSource& source) = 0;
  // Whether writing takes longer than reading, and tells how far it has come.
  virtual bool tells_writes() const { return false; }
  // Up to this size an object is one part.
  virtual uint64_t part_bytes() const = 0;
};

// Files below `folder`, out of which no symlink leads when `beneath`.
std::unique_ptr<CopyDestination> MakeFileDestination(sys::Fd folder, bool beneath);
// Keys that begin with `prefix`.
std::unique_ptr<CopyDestination> MakeStoreDestination(store::SyncStore* store, std::string prefix);

}  // namespace forebay::engine
