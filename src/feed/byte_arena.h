// Bytes of many small values that live together: none moves when more come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace forebay::feed {

// Of one thread while it is filled.
class ByteArena {
 public:
  MutableBytes Take(size_t bytes) {
    if (bytes > left_.size()) {
      const size_t block = std::max(bytes, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
      left_ = {blocks_.back().get(), block};
    }
    const MutableBytes taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  ByteView Copy(ByteView bytes) {
    const MutableBytes taken = Take(bytes.size());
    std::ranges::copy(bytes, taken.begin());
    return taken;
  }

 private:
  static constexpr size_t kBlock = 16 << 10;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  MutableBytes left_;
};

}  // namespace forebay::feed
