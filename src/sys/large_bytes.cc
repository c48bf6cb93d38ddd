#include "sys/large_bytes.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace forebay::sys {
namespace {

constexpr size_t kHugePage = 2U << 20;
constexpr std::align_val_t kSmall{64};
constexpr std::align_val_t kLarge{kHugePage};

std::align_val_t AlignOf(size_t capacity) { return capacity < kHugePage ? kSmall : kLarge; }

}  // namespace

LargeBytes::LargeBytes(size_t size) : size_(size), capacity_(size) {
  if (size == 0) return;
  data_ = static_cast<std::byte*>(::operator new(size, AlignOf(size)));
  // Only whole ones, so that none is larger than what was asked for. It may be refused.
  const size_t whole = size / kHugePage * kHugePage;
  if (whole > 0) (void)::madvise(data_, whole, MADV_HUGEPAGE);
}

LargeBytes::LargeBytes(LargeBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

LargeBytes& LargeBytes::operator=(LargeBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

LargeBytes::~LargeBytes() {
  if (data_ != nullptr) ::operator delete(data_, AlignOf(capacity_));
}

void LargeBytes::Reset(size_t size) {
  if (size > capacity_ || size < capacity_ / 2) *this = LargeBytes(size);
  size_ = size;
}

void GiveBackPages(std::byte* first, size_t bytes) { (void)::madvise(first, bytes, MADV_DONTNEED); }

}  // namespace forebay::sys
