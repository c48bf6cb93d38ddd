#include "feed/output_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "sys/large_bytes.h"

namespace forebay::feed {
namespace {
constexpr std::align_val_t kPage{4096};
void Free(std::byte* data) { ::operator delete[](data, kPage); }

// Batches of ragged arrays are all of about one size: any block serves any of them.
size_t RoundedUp(size_t bytes) {
  constexpr size_t kLeast = 4096;
  constexpr size_t kClasses = 16;  // from one power of two to the next
  const size_t step = std::max(kLeast, std::bit_floor(std::max<size_t>(bytes, 1)) / kClasses);
  return (bytes + step - 1) / step * step;
}
}  // namespace

std::shared_ptr<OutputPool> OutputPool::Make(uint64_t keep_bytes) {
  return std::shared_ptr<OutputPool>(new OutputPool(keep_bytes));
}

OutputPool::~OutputPool() {
  for (const Block& block : idle_) Free(block.data);
}

std::shared_ptr<std::byte> OutputPool::Take(size_t bytes) {
  bytes = RoundedUp(bytes);
  Block block{nullptr, bytes};
  {
    const MutexLock lock(mutex_);
    for (size_t i = idle_.size(); i-- > 0;) {
      if (idle_[i].bytes < bytes || idle_[i].bytes > 2 * bytes) continue;
      block = idle_[i];
      idle_bytes_ -= block.bytes;
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    if (block.data == nullptr) {
      // Sizes that no longer fit make room for those that do.
      while (!idle_.empty() && mapped_ + bytes > keep_bytes_) {
        mapped_ -= idle_.front().bytes;
        idle_bytes_ -= idle_.front().bytes;
        Free(idle_.front().data);
        idle_.erase(idle_.begin());
      }
      mapped_ += bytes;
    }
  }
  if (block.data == nullptr) block.data = static_cast<std::byte*>(::operator new[](bytes, kPage));
  return {block.data, [pool = shared_from_this(), block](std::byte*) { pool->GiveBack(block); }};
}

void OutputPool::GiveBack(Block block) {
  {
    const MutexLock lock(mutex_);
    if (keeps_ && mapped_ <= keep_bytes_) {
      idle_.push_back(block);
      idle_bytes_ += block.bytes;
      return;
    }
    mapped_ -= block.bytes;
  }
  Free(block.data);
}

uint64_t OutputPool::Trim(uint64_t bytes) {
  const MutexLock lock(mutex_);
  uint64_t done = 0;
  size_t taken = 0;
  for (; done < bytes && taken < idle_.size(); ++taken) {
    const Block& block = idle_[taken];
    done += block.bytes;
    sys::GiveBackPages(block.data, block.bytes);  // the allocator may keep what it gets
    Free(block.data);
  }
  idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(taken));
  mapped_ -= done;
  idle_bytes_ -= done;
  return done;
}

void OutputPool::KeepNone() {
  {
    const MutexLock lock(mutex_);
    keeps_ = false;
  }
  (void)Trim(~uint64_t{0});
}

uint64_t OutputPool::idle_bytes() const {
  const MutexLock lock(mutex_);
  return idle_bytes_;
}

uint64_t OutputPool::mapped_bytes() const {
  const MutexLock lock(mutex_);
  return mapped_;
}

void TrimIdle(OutputPool& outputs, SlabPool& slabs, uint64_t most) {
  const uint64_t blocks = outputs.idle_bytes();
  const uint64_t raw = slabs.idle_bytes();
  if (blocks + raw <= most) return;
  const uint64_t over = blocks + raw - most;
  // What more of lies idle is needed less: in an epoch that comes from memory, no slab is.
  const bool slabs_first = raw > blocks;
  const uint64_t given = slabs_first ? slabs.Trim(over) : outputs.Trim(over);
  if (given >= over) return;
  (void)(slabs_first ? outputs.Trim(over - given) : slabs.Trim(over - given));
}

}  // namespace forebay::feed
