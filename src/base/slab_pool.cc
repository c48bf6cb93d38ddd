#include "base/slab_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/assert.h"

namespace forebay {
namespace {
constexpr size_t kSlabsPerRegion = 32;  // a large page
constexpr size_t kRegionBytes = kSlabsPerRegion * kSlabBytes;
constexpr std::align_val_t kPage{kRegionBytes};

// The number of the region that it lies in.
uintptr_t RegionOf(const std::byte* slab) {
  return reinterpret_cast<uintptr_t>(slab) / kRegionBytes;
}
}  // namespace

SlabBuffer::SlabBuffer(SlabBuffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      slabs_(std::move(other.slabs_)),
      size_(std::exchange(other.size_, 0)) {
  other.slabs_.clear();
}

SlabBuffer& SlabBuffer::operator=(SlabBuffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(slabs_, other.slabs_);
  std::swap(size_, other.size_);
  return *this;
}

SlabBuffer::~SlabBuffer() {
  if (pool_) pool_->GiveBack(slabs_);
}

std::vector<MutableBytes> SlabBuffer::Pieces(size_t offset, size_t length) {
  FB_ASSERT(offset <= size_ && length <= size_ - offset);
  std::vector<MutableBytes> pieces;
  pieces.reserve(SlabsFor(length) + 1);
  while (length > 0) {
    const size_t inside = offset % kSlabBytes;
    const size_t n = std::min(length, kSlabBytes - inside);
    pieces.emplace_back(slabs_[offset / kSlabBytes] + inside, n);
    offset += n;
    length -= n;
  }
  return pieces;
}

std::vector<ByteView> SlabBuffer::Pieces(size_t offset, size_t length) const {
  auto pieces = const_cast<SlabBuffer*>(this)->Pieces(offset, length);
  return {pieces.begin(), pieces.end()};
}

ByteView SlabBuffer::Contiguous(size_t offset, size_t length,
                                std::vector<std::byte>& scratch) const {
  FB_ASSERT(offset <= size_ && length <= size_ - offset);
  const size_t inside = offset % kSlabBytes;
  if (length == 0) return {};
  if (inside + length <= kSlabBytes) return {slabs_[offset / kSlabBytes] + inside, length};
  scratch.resize(length);
  CopyOut(offset, scratch);
  return scratch;
}

void SlabBuffer::CopyOut(size_t offset, MutableBytes to) const {
  size_t done = 0;
  for (const ByteView piece : Pieces(offset, to.size())) {
    std::memcpy(to.data() + done, piece.data(), piece.size());
    done += piece.size();
  }
}

void SlabBuffer::CopyIn(size_t offset, ByteView from) {
  size_t done = 0;
  for (const MutableBytes piece : Pieces(offset, from.size())) {
    std::memcpy(piece.data(), from.data() + done, piece.size());
    done += piece.size();
  }
}

std::shared_ptr<SlabPool> SlabPool::Make(Pages pages) {
  return std::shared_ptr<SlabPool>(new SlabPool(pages));
}

SlabPool::~SlabPool() {
  FB_ASSERT(free_.size() + bare_.size() == mapped_);
  for (std::byte* region : regions_) ::operator delete[](region, kPage);
}

SlabBuffer SlabPool::Take(size_t bytes) {
  SlabBuffer buffer;
  buffer.pool_ = shared_from_this();
  buffer.size_ = bytes;
  const size_t count = SlabsFor(bytes);
  buffer.slabs_.reserve(count);
  const MutexLock lock(mutex_);
  while (free_.size() < count) {
    if (bare_.empty()) {
      AddRegion();
      continue;
    }
    free_.push_back(bare_.back());
    bare_.pop_back();
  }
  buffer.slabs_.assign(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(count));
  free_.resize(free_.size() - count);
  return buffer;
}

void SlabPool::AddRegion() {
  auto* region = static_cast<std::byte*>(::operator new[](kRegionBytes, kPage));
  if (pages_ == Pages::kLarge) (void)::madvise(region, kRegionBytes, MADV_HUGEPAGE);  // may refuse
  regions_.push_back(region);
  for (size_t i = kSlabsPerRegion; i-- > 0;) free_.push_back(region + i * kSlabBytes);
  mapped_ += kSlabsPerRegion;
}

uint64_t SlabPool::Trim(uint64_t bytes) {
  const MutexLock lock(mutex_);
  uint64_t done = TrimRegions(bytes);
  // Of regions that are partly in use: those that were given back longest ago.
  size_t taken = 0;
  for (; done < bytes && taken < free_.size(); ++taken, done += kSlabBytes) {
    (void)::madvise(free_[taken], kSlabBytes, MADV_DONTNEED);
    bare_.push_back(free_[taken]);
  }
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(taken));
  return done;
}

// Those no slab of which is in use.
uint64_t SlabPool::TrimRegions(uint64_t bytes) {
  std::unordered_map<uintptr_t, size_t> free;  // slabs of each region, and of them with
  std::unordered_map<uintptr_t, size_t> held;  // memory
  for (const std::byte* slab : free_) ++free[RegionOf(slab)], ++held[RegionOf(slab)];
  for (const std::byte* slab : bare_) ++free[RegionOf(slab)];
  uint64_t done = 0;
  std::unordered_set<uintptr_t> gone;
  for (const auto& [region, slabs] : free) {
    if (done >= bytes) break;
    if (slabs < kSlabsPerRegion) continue;
    done += held[region] * kSlabBytes;
    gone.insert(region);
  }
  if (gone.empty()) return 0;
  const auto is_gone = [&](const std::byte* slab) { return gone.contains(RegionOf(slab)); };
  std::erase_if(free_, is_gone);
  std::erase_if(bare_, is_gone);
  std::erase_if(regions_, [&](std::byte* region) {
    if (!is_gone(region)) return false;
    (void)::madvise(region, kRegionBytes, MADV_DONTNEED);  // the allocator may keep what it gets
    ::operator delete[](region, kPage);
    return true;
  });
  mapped_ -= gone.size() * kSlabsPerRegion;
  return done;
}

uint64_t SlabPool::idle_bytes() const {
  const MutexLock lock(mutex_);
  return free_.size() * kSlabBytes;
}

void SlabPool::GiveBack(std::vector<std::byte*>& slabs) {
  const MutexLock lock(mutex_);
  // Last in, first out: the slab that is warm in the cache goes out first.
  free_.insert(free_.end(), slabs.rbegin(), slabs.rend());
  slabs.clear();
}

size_t SlabPool::slabs_mapped() const {
  const MutexLock lock(mutex_);
  return mapped_ - bare_.size();
}

size_t SlabPool::slabs_in_use() const {
  const MutexLock lock(mutex_);
  return mapped_ - free_.size() - bare_.size();
}

}  // namespace forebay
