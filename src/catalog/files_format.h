// What reader and writer of a catalog of plain objects agree on. Byte table: docs/formats/files.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "catalog/block_file.h"

namespace forebay::catalog {

inline constexpr BlockFileKind kFilesKind{
    .magic = "FBFILES\n", .version = 1, .of = "plain objects"};
inline constexpr uint64_t kFilesMost = (uint64_t{1} << 32) - 1;

// A data set's id: of the one it was before, and of the blocks that came. `blocks`: their checks.
inline std::string ContentHash(const std::string& before, const std::vector<uint64_t>& blocks) {
  std::string text = before;
  text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(uint64_t));
  return HashBytes(AsBytes(text)).ToHex();
}

}  // namespace forebay::catalog
