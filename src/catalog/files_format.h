// What reader and writer of a catalog of plain objects agree on. Byte table: docs/formats/files.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace forebay::catalog {

inline constexpr std::string_view kFilesMagic = "FBFILES\n";
inline constexpr uint32_t kFilesVersion = 1;
inline constexpr size_t kFilesHeadBytes = 64;
inline constexpr uint64_t kFilesMost = (uint64_t{1} << 32) - 1;
// The largest sums that are kept: of 1, 2, 4, ... 65,536 objects.
inline constexpr int kLargestSums = 17;

// A data set's id: of the one it was before, and of the blocks that came. `blocks`: their checks.
inline std::string ContentHash(const std::string& before, const std::vector<uint64_t>& blocks) {
  std::string text = before;
  text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(uint64_t));
  return HashBytes(AsBytes(text)).ToHex();
}

}  // namespace forebay::catalog
