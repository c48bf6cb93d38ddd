// The one pool of buffers: equal slabs, touched on first use and kept. Mapping and touching fresh
// pages costs more than receiving them, so bytes from the network always land in reused slabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"

namespace forebay {

inline constexpr size_t kSlabBytes = 64 * 1024;

// Slabs needed for `bytes`.
constexpr uint64_t SlabsFor(uint64_t bytes) { return (bytes + kSlabBytes - 1) / kSlabBytes; }

class SlabPool;

// Bytes [0, size) spread over a list of slabs; given back to the pool when destroyed. Move-only.
class SlabBuffer {
 public:
  SlabBuffer() = default;
  SlabBuffer(SlabBuffer&& other) noexcept;
  SlabBuffer& operator=(SlabBuffer&& other) noexcept;
  ~SlabBuffer();

  size_t size() const { return size_; }
  size_t slab_count() const { return slabs_.size(); }
  // The pieces of [offset, offset + length), in order.
  std::vector<MutableBytes> Pieces(size_t offset, size_t length);
  std::vector<ByteView> Pieces(size_t offset, size_t length) const;
  // [offset, offset + length) as one span: a view when it lies inside one slab, otherwise copied
  // into `scratch`.
  ByteView Contiguous(size_t offset, size_t length, std::vector<std::byte>& scratch) const;
  void CopyOut(size_t offset, MutableBytes to) const;
  void CopyIn(size_t offset, ByteView from);

 private:
  friend class SlabPool;
  std::shared_ptr<SlabPool> pool_;  // a buffer may outlive the engine that made it (DLPack)
  std::vector<std::byte*> slabs_;
  size_t size_ = 0;
};

// Thread-safe. Never refuses: what may be taken is decided by the budget, before.
class SlabPool : public std::enable_shared_from_this<SlabPool> {
 public:
  // kLarge: 2 MiB where the system has them, for one that lives as long as a run and fills its
  // slabs: touching a page costs one fault instead of hundreds, and all of it is cleared for that.
  enum class Pages : uint8_t { kSmall, kLarge };
  static std::shared_ptr<SlabPool> Make(Pages pages = Pages::kSmall);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  SlabBuffer Take(size_t bytes);
  // Slabs that have memory (free ones included), and those in use.
  size_t slabs_mapped() const FB_EXCLUDES(mutex_);
  size_t slabs_in_use() const FB_EXCLUDES(mutex_);
  // What free slabs hold. Trim gives so much of it back to the system, or all; returns how much.
  uint64_t idle_bytes() const FB_EXCLUDES(mutex_);
  uint64_t Trim(uint64_t bytes) FB_EXCLUDES(mutex_);

 private:
  friend class SlabBuffer;
  explicit SlabPool(Pages pages) : pages_(pages) {}
  void GiveBack(std::vector<std::byte*>& slabs) FB_EXCLUDES(mutex_);
  uint64_t TrimRegions(uint64_t bytes) FB_REQUIRES(mutex_);
  void AddRegion() FB_REQUIRES(mutex_);

  const Pages pages_;
  mutable Mutex mutex_;
  std::vector<std::byte*> free_ FB_GUARDED_BY(mutex_);
  std::vector<std::byte*> bare_ FB_GUARDED_BY(mutex_);  // free, their memory given back
  std::vector<std::byte*> regions_ FB_GUARDED_BY(mutex_);
  size_t mapped_ FB_GUARDED_BY(mutex_) = 0;
};

}  // namespace forebay
