#include "catalog/files_catalog.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "catalog/files_format.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

using catalog::kBlockFileHeadBytes;

// What a loader does: plans by sizes, reads by keys, asks for bounds.
void Open(std::vector<std::byte> file) {
  const auto opened = catalog::FilesCatalog::Open(catalog::BytesInMemory(std::move(file)));
  if (!opened.ok()) return;
  const catalog::FilesCatalog& files = **opened;
  FB_ASSERT(files.count() > 0 && files.generations().back().samples == files.count());
  for (const uint64_t rows : {uint64_t{1}, uint64_t{3}, uint64_t{100'000}, ~uint64_t{0}}) {
    FB_ASSERT(files.LargestBytes(rows) <= files.total_bytes());
  }
  const uint64_t step = std::max<uint64_t>(1, files.count() / 64);
  for (uint64_t i = 0; i < files.count(); i += step) {
    const auto entry = files.At(i);
    const auto size = files.SizeOf(i);
    if (entry.ok()) FB_ASSERT(size.ok() && *size == entry->size);
  }
}

void Put(std::vector<std::byte>& file, size_t at, uint64_t value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

// The hashes keep damage out; whoever writes the file can make them fit.
void MakeFit(std::vector<std::byte>& file) {
  uint64_t index = 0;
  uint64_t blocks = 0;
  std::memcpy(&index, file.data() + 24, sizeof(index));
  std::memcpy(&blocks, file.data() + 32, sizeof(blocks));
  if (index < kBlockFileHeadBytes || index > file.size()) return;
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
}

}  // namespace

void FilesCatalog(ByteView input) {
  std::vector<std::byte> file(input.begin(), input.end());
  Open(file);
  if (file.size() < kBlockFileHeadBytes) return;
  MakeFit(file);
  Open(std::move(file));
}

}  // namespace forebay::fuzz
