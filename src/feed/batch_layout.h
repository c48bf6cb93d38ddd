// Where each array of a batch lies in its one output block.
#pragma once

#include <cstdint>
#include <vector>

#include "feed/dataset.h"

namespace forebay::feed {

struct BatchLayout {
  BatchLayout(const std::vector<SampleArray>& arrays, uint64_t rows) {
    for (const SampleArray& array : arrays) {
      offsets.push_back(bytes);
      bytes += (array.bytes * rows + kAlign - 1) / kAlign * kAlign;
    }
  }
  static constexpr uint64_t kAlign = 64;  // a cache line, and what torch and DLPack expect
  std::vector<uint64_t> offsets;          // per array
  uint64_t bytes = 0;
};

}  // namespace forebay::feed
