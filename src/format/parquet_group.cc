#include <utility>

#include "format/packed_numbers.h"
#include "format/parquet.h"

namespace forebay::format {
namespace {

constexpr uint64_t kPackedVersion = 1;

void PackChunk(const ParquetChunk& chunk, NumberPacker& out) {
  const ParquetColumn& column = chunk.column;
  out.Varint(static_cast<uint64_t>(column.stored));
  out.Varint(column.fixed_bytes);
  out.Varint(column.value_bytes);
  out.Varint(column.max_definition);
  out.Varint(column.max_repetition);
  out.Varint(column.list_definition);
  out.Varint(chunk.codec);
  out.Varint(chunk.always_compressed ? 1 : 0);
  out.Varint(chunk.entries);
  out.Varint(chunk.uncompressed);
  out.Varint(chunk.pages.size());
  uint64_t row = 0;
  for (const TablePage& page : chunk.pages) {
    out.Varint(page.first_row - std::exchange(row, page.first_row));
    out.Varint(page.range.size());
  }
  // What lies ahead of the pages, the dictionary; they follow one another.
  if (!chunk.pages.empty()) {
    out.Varint(chunk.pages.front().range.offset - chunk.range.offset);
  }
}

bool UnpackPages(NumberUnpacker& in, uint64_t rows, ParquetChunk& chunk) {
  chunk.pages.resize(in.Count());
  uint64_t row = 0;
  std::vector<uint64_t> sizes;
  for (TablePage& page : chunk.pages) {
    const uint64_t more = in.Varint(rows);
    const bool first = &page == &chunk.pages.front();
    row += more;
    if (row >= rows || (first ? more != 0 : more == 0)) return false;
    page.first_row = row;
    sizes.push_back(in.Varint(chunk.range.size()));
  }
  if (chunk.pages.empty()) return true;
  uint64_t at = chunk.range.offset + in.Varint(chunk.range.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > chunk.range.end - at) return false;
    chunk.pages[i].range = {at, at + sizes[i]};
    at += sizes[i];
  }
  return in.ok();
}

bool UnpackChunk(NumberUnpacker& in, uint64_t rows, ParquetChunk& chunk) {
  constexpr uint64_t kFixedMost = 1 << 20;
  constexpr uint64_t kLevels = 64;
  constexpr uint64_t kCodecs = 255;
  constexpr uint64_t kEntriesMost = uint64_t{1} << 40;
  ParquetColumn& column = chunk.column;
  column.stored = static_cast<ParquetColumn::Stored>(
      in.Varint(static_cast<uint64_t>(ParquetColumn::Stored::kFixed)));
  column.fixed_bytes = static_cast<uint32_t>(in.Varint(kFixedMost));
  column.value_bytes = static_cast<uint32_t>(in.Varint(kFixedMost));
  column.max_definition = static_cast<uint8_t>(in.Varint(kLevels));
  column.max_repetition = static_cast<uint8_t>(in.Varint(1));
  column.list_definition = static_cast<uint8_t>(in.Varint(kLevels));
  chunk.codec = static_cast<uint8_t>(in.Varint(kCodecs));
  chunk.always_compressed = in.Varint(1) != 0;
  chunk.entries = in.Varint(kEntriesMost);
  chunk.uncompressed = in.Varint(kParquetBytesMost);
  return in.ok() && UnpackPages(in, rows, chunk);
}

// Whether what comes out of values that are stored so may be of this size.
bool CanBe(const ParquetColumn& column) {
  using Stored = ParquetColumn::Stored;
  const uint32_t bytes = column.value_bytes;
  switch (column.stored) {
    case Stored::kBool:
      return bytes == 1;
    case Stored::kInt32:
      return bytes == 1 || bytes == 2 || bytes == 4;
    case Stored::kInt64:
    case Stored::kInt96:
    case Stored::kDouble:
      return bytes == 8;
    case Stored::kFloat:
      return bytes == 4;
    case Stored::kBytes:
      return bytes == 0 && column.max_repetition == 0;
    case Stored::kFixed:
      return bytes > 0 && bytes == column.fixed_bytes;
  }
  return false;
}

}  // namespace

std::string PackParquetGroup(const ParquetGroup& group) {
  NumberPacker out;
  out.Varint(kPackedVersion);
  out.Varint(group.rows);
  out.Varint(group.chunks.size());
  for (const ParquetChunk& chunk : group.chunks) PackChunk(chunk, out);
  return out.Take();
}

Result<ParquetGroup> UnpackParquetGroup(std::string_view packed,
                                        const std::vector<ByteRange>& fields) {
  constexpr uint64_t kRowsMost = uint64_t{1} << 40;
  const auto damaged = [] {
    return Status(Code::kDataLoss, "the catalog's words on a row group are damaged");
  };
  NumberUnpacker in(packed);
  if (in.Varint() != kPackedVersion) {
    return Status(Code::kUnimplemented, "the catalog describes row groups as another version does");
  }
  ParquetGroup group{.rows = in.Varint(kRowsMost)};
  if (in.Count() != fields.size() || !in.ok()) return damaged();
  for (const ByteRange& range : fields) {
    ParquetChunk chunk{.range = range};
    if (!UnpackChunk(in, group.rows, chunk) || !CanBe(chunk.column)) return damaged();
    const bool counted = chunk.column.max_repetition == 0 ? chunk.entries == group.rows
                                                          : chunk.entries >= group.rows;
    if (!counted) return damaged();
    group.chunks.push_back(std::move(chunk));
  }
  if (!in.done()) return damaged();
  return group;
}

}  // namespace forebay::format
