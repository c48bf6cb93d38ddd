#include "format/parquet.h"
#include "base/assert.h"
#include "format/parquet_thrift.h"
#include "fuzz/shards.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

void DecodeAll(ByteView input, const format::FoundRecord& record) {
  constexpr uint64_t kRowsMost = 1 << 16;
  const auto group = format::UnpackParquetGroup(record.key, RangesOf(record));
  FB_ASSERT(group.ok());
  if (group->rows > kRowsMost) return;
  for (const format::ParquetChunk& chunk : group->chunks) {
    if (chunk.entries > kRowsMost) continue;
    const ByteView pages = input.subspan(chunk.range.offset, chunk.range.size());
    format::TableValues values;
    const Status status = format::DecodeParquet(chunk, group->rows, pages, {}, &values);
    const bool list = chunk.column.max_repetition > 0;
    if (status.ok()) CheckValues(values, list ? 0 : chunk.column.value_bytes, group->rows);
  }
}

}  // namespace

// Where there is no Arrow, every file is refused, and the test is of that.
void Parquet(ByteView input) {
  CheckScan(input, Scanned::kTables, &format::ScanParquet,
            [&](const format::FoundRecord& record) { DecodeAll(input, record); });
}

void ParquetPages(ByteView input) {
  for (const std::optional<uint64_t> entries : {std::optional<uint64_t>(5), {}}) {
    const auto pages = format::WalkParquetPages(input, entries, {}, {});
    for (size_t i = 0; pages.ok() && i < pages->size(); ++i) {
      const format::ParquetPageHead& page = (*pages)[i];
      FB_ASSERT(page.offset + page.head_bytes + page.bytes <= input.size());
      FB_ASSERT(page.uncompressed <= format::ParquetLimits{}.page_bytes);
    }
  }
  (void)format::CheckParquetFooter(input, {}, {});
  constexpr uint64_t kBytes = 1000;
  const std::vector<ByteRange> ranges = {{10, kBytes}, {kBytes, 2 * kBytes}};
  const auto group = format::UnpackParquetGroup(AsText(input), ranges);
  for (size_t i = 0; group.ok() && i < ranges.size(); ++i) {
    for (const format::TablePage& page : group->chunks[i].pages) {
      FB_ASSERT(ranges[i].Contains(page.range) && page.first_row < group->rows);
    }
  }
}

}  // namespace forebay::fuzz
