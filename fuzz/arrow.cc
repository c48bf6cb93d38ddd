#include "format/arrow.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "format/arrow_schema.h"
#include "fuzz/shards.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

constexpr uint64_t kRowsMost = 1 << 16;

void Decode(ByteView input, const format::ArrowChunk& chunk) {
  std::vector<std::byte> bytes;
  for (const ByteRange& range : format::ReadsOf(chunk)) {
    const ByteView part = input.subspan(range.offset, range.size());
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  format::TableValues values;
  const Status status = format::DecodeArrow(chunk, bytes, {}, &values);
  FB_ASSERT(status.ok() || status.code() == Code::kDataLoss ||
            status.code() == Code::kUnimplemented);
  if (!status.ok()) return;
  CheckValues(values, chunk.column.ragged() ? 0 : chunk.column.value_bytes(), chunk.rows);
}

// All of it, and by parts where it may be cut.
void DecodeParts(ByteView input, const format::ArrowChunk& chunk) {
  Decode(input, chunk);
  for (uint64_t row = 0; chunk.step > 0 && row < chunk.rows; row += chunk.step) {
    Decode(input, format::SliceOf(chunk, row, std::min(chunk.step, chunk.rows - row)));
  }
}

bool IsIn(ByteView input, const format::ArrowChunk& chunk) {
  for (const ByteRange& range : format::ReadsOf(chunk)) {
    if (range.end > input.size()) return false;
  }
  return true;
}

}  // namespace

// Where there is no Arrow, what is compressed by LZ4 is refused.
void Arrow(ByteView input) {
  CheckScan(input, Scanned::kTables, &format::ScanArrow, [&](const format::FoundRecord& record) {
    const auto batch = format::UnpackArrowBatch(record.key, RangesOf(record));
    FB_ASSERT(batch.ok());
    for (const format::ArrowChunk& chunk : batch->chunks) {
      FB_ASSERT(IsIn(input, chunk));
      if (batch->rows <= kRowsMost) DecodeParts(input, chunk);
    }
  });
  (void)format::IsArrowStream(input, input.size());
}

void ArrowBatch(ByteView input) {
  format::FlatReader in(input);
  const auto message = format::ParseArrowMessage(in, {});
  if (message.ok()) {
    const auto schema = format::ParseArrowSchema(in, message->header, message->version, {});
    if (schema.ok()) {
      FB_ASSERT(schema->leaves.size() + schema->left_out <= format::ArrowLimits{}.fields);
    }
  }
  constexpr uint64_t kBytes = 1000;
  const std::vector<ByteRange> ranges = {{10, kBytes}, {kBytes, 2 * kBytes}};
  const auto batch = format::UnpackArrowBatch(AsText(input), ranges);
  if (!batch.ok()) return;
  const std::vector<std::byte> bytes(2 * kBytes, std::byte{1});
  for (const format::ArrowChunk& chunk : batch->chunks) {
    if (IsIn(bytes, chunk) && batch->rows <= kRowsMost) DecodeParts(bytes, chunk);
  }
}

}  // namespace forebay::fuzz
