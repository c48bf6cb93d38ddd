#include "catalog/files_catalog.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "fuzz/fit.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

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

}  // namespace

void FilesCatalog(ByteView input) {
  std::vector<std::byte> file(input.begin(), input.end());
  Open(file);
  if (MakeFit(file)) Open(std::move(file));
}

}  // namespace forebay::fuzz
