// Blocks for whole batches, decoded into once and handed to the consumer as they are. A block goes
// back when its last holder lets go, which may be long after the loader is gone. Host memory now;
// pinned and device memory are other allocators behind the same face.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/slab_pool.h"

namespace forebay::feed {

// Thread-safe.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  // Idle blocks are kept while all blocks together stay within `keep_bytes`.
  static std::shared_ptr<OutputPool> Make(uint64_t keep_bytes);
  ~OutputPool();
  OutputPool(const OutputPool&) = delete;
  OutputPool& operator=(const OutputPool&) = delete;

  // At least `bytes`, aligned to 4,096; contents are arbitrary.
  std::shared_ptr<std::byte> Take(size_t bytes);
  uint64_t mapped_bytes() const FB_EXCLUDES(mutex_);
  // What idle blocks hold. Trim gives so much of it back to the system, or all, those that were
  // used longest ago first; returns how much.
  uint64_t idle_bytes() const FB_EXCLUDES(mutex_);
  uint64_t Trim(uint64_t bytes) FB_EXCLUDES(mutex_);
  // No block is kept from here on: batches that are still held are all there is.
  void KeepNone() FB_EXCLUDES(mutex_);

 private:
  struct Block {
    std::byte* data;
    size_t bytes;
  };
  explicit OutputPool(uint64_t keep_bytes) : keep_bytes_(keep_bytes) {}
  void GiveBack(Block block) FB_EXCLUDES(mutex_);

  const uint64_t keep_bytes_;
  mutable Mutex mutex_;
  bool keeps_ FB_GUARDED_BY(mutex_) = true;
  std::vector<Block> idle_ FB_GUARDED_BY(mutex_);
  uint64_t idle_bytes_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t mapped_ FB_GUARDED_BY(mutex_) = 0;
};

// Memory that was raw bytes may be wanted for output next, and the other way round: what both pools
// keep idle is no more than `most`, together.
void TrimIdle(OutputPool& outputs, SlabPool& slabs, uint64_t most);

}  // namespace forebay::feed
