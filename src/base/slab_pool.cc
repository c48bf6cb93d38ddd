#include "base/slab_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.h"

namespace forebay {
namespace {
constexpr size_t kSlabsPerRegion = 32;  // a large page
constexpr std::align_val_t kPage{kSlabsPerRegion * kSlabBytes};
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
  FB_ASSERT(free_.size() == mapped_);
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
    auto* region = static_cast<std::byte*>(::operator new[](kSlabsPerRegion * kSlabBytes, kPage));
    if (pages_ == Pages::kLarge) {  // which may be refused
      (void)::madvise(region, kSlabsPerRegion * kSlabBytes, MADV_HUGEPAGE);
    }
    regions_.push_back(region);
    for (size_t i = kSlabsPerRegion; i-- > 0;) free_.push_back(region + i * kSlabBytes);
    mapped_ += kSlabsPerRegion;
  }
  buffer.slabs_.assign(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(count));
  free_.resize(free_.size() - count);
  return buffer;
}

void SlabPool::GiveBack(std::vector<std::byte*>& slabs) {
  const MutexLock lock(mutex_);
  // Last in, first out: the slab that is warm in the cache goes out first.
  free_.insert(free_.end(), slabs.rbegin(), slabs.rend());
  slabs.clear();
}

size_t SlabPool::slabs_mapped() const {
  const MutexLock lock(mutex_);
  return mapped_;
}

size_t SlabPool::slabs_in_use() const {
  const MutexLock lock(mutex_);
  return mapped_ - free_.size();
}

}  // namespace forebay
