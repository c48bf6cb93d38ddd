#include "catalog/records_catalog.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "fuzz/fit.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

// What a loader does: plans by ranges, reads by shards, asks for bounds.
void Open(std::vector<std::byte> file) {
  const auto opened = catalog::RecordsCatalog::Open(catalog::BytesInMemory(std::move(file)));
  if (!opened.ok()) return;
  const catalog::RecordsCatalog& records = **opened;
  FB_ASSERT(records.count() > 0 && records.shard_count() > 0);
  for (const uint64_t rows : {uint64_t{1}, uint64_t{3}, uint64_t{100'000}, ~uint64_t{0}}) {
    FB_ASSERT(records.LargestBytes(rows) <= records.total_bytes());
  }
  const uint64_t step = std::max<uint64_t>(1, records.count() / 64);
  for (uint64_t i = 0; i < records.count(); i += step) {
    const auto entry = records.At(i);
    (void)records.KeyOf(i);
    if (!entry.ok()) continue;
    (void)records.ShardAt(entry->shard);
    FB_ASSERT(entry->range.size() <= records.range_max());
    for (const catalog::RecordField& field : entry->fields) {
      FB_ASSERT(field.field < records.fields().size() && entry->range.Contains(field.range));
    }
  }
}

}  // namespace

void RecordsCatalog(ByteView input) {
  std::vector<std::byte> file(input.begin(), input.end());
  Open(file);
  if (MakeFit(file)) Open(std::move(file));
}

}  // namespace forebay::fuzz
