#include "catalog/records_part.h"

#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

// What a merge does.
void Merge(ByteView bytes) {
  auto part = catalog::OpenRecordsPart(bytes);
  if (!part.ok()) return;
  FB_ASSERT(part->head.part < part->head.parts);
  FB_ASSERT(!part->catalog || part->catalog->shard_count() == part->shards.size());
  const bool whole = part->head.parts == 1;
  const bool records = part->catalog != nullptr;
  std::vector<catalog::RecordsPart> parts;
  parts.push_back(*std::move(part));
  const auto merged = catalog::MergeRecords(parts);
  FB_ASSERT(!merged.ok() || (whole && records));
}

}  // namespace

void RecordsPart(ByteView input) {
  Merge(input);
  // With a check that fits.
  constexpr size_t kCheckAt = 16, kHead = 24;
  if (input.size() < kHead) return;
  std::vector<std::byte> file(input.begin(), input.end());
  const uint64_t check = HashBytes(input.subspan(kHead)).low;
  std::memcpy(file.data() + kCheckAt, &check, sizeof check);
  Merge(file);
}

}  // namespace forebay::fuzz
