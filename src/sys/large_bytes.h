// Memory that is read here and there: in pages as large as there are, so that the processor finds
// them. Not cleared.
#pragma once

#include <cstddef>

namespace forebay::sys {

// Move-only.
class LargeBytes {
 public:
  LargeBytes() = default;
  explicit LargeBytes(size_t size);
  LargeBytes(LargeBytes&& other) noexcept;
  LargeBytes& operator=(LargeBytes&& other) noexcept;
  ~LargeBytes();

  // What was in it is lost where it has to grow. Memory that is far too large is given back.
  void Reset(size_t size);
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// The memory of whole pages goes back to the system; what was in it is lost, and touching it takes
// new memory. For what is about to be freed, which the allocator might keep.
void GiveBackPages(std::byte* first, size_t bytes);

}  // namespace forebay::sys
