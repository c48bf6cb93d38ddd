#include "fuzz/fit.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "catalog/block_file.h"

namespace forebay::fuzz {
namespace {

using catalog::kBlockFileHeadBytes;

void Put(std::vector<std::byte>& file, size_t at, uint64_t value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

}  // namespace

bool MakeFit(std::vector<std::byte>& file) {
  if (file.size() < kBlockFileHeadBytes) return false;
  uint64_t index = 0;
  uint64_t blocks = 0;
  std::memcpy(&index, file.data() + 24, sizeof(index));
  std::memcpy(&blocks, file.data() + 32, sizeof(blocks));
  if (index < kBlockFileHeadBytes || index > file.size()) return false;
  const uint64_t directory = (std::min<uint64_t>(blocks, file.size()) + 1) * sizeof(uint64_t);
  for (uint64_t b = 0; b < blocks && directory <= file.size() - index; ++b) {
    uint64_t ends[2] = {};
    std::memcpy(ends, file.data() + file.size() - directory + b * sizeof(uint64_t), sizeof(ends));
    if (ends[0] >= ends[1] || ends[1] > index || ends[1] - ends[0] < 8) break;
    const ByteView block = ByteView(file).subspan(ends[0], ends[1] - ends[0]);
    Put(file, ends[0], HashBytes(block.subspan(8)).low);
  }
  const Hash128 hash = HashBytes(ByteView(file).subspan(index));
  Put(file, 16, file.size());
  Put(file, 40, hash.low);
  Put(file, 48, hash.high);
  Put(file, 56, HashBytes(ByteView(file).first(56)).low);
  return true;
}

}  // namespace forebay::fuzz
