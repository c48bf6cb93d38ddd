#include "format/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace forebay::format {
namespace {

TableColumn ColumnOf(ParquetChunk chunk, uint64_t) {
  TableLayout layout{.value_bytes = chunk.column.value_bytes,
                     .list = chunk.column.max_repetition > 0,
                     .entries = chunk.entries,
                     .uncompressed = chunk.uncompressed,
                     .ranges = {chunk.range},
                     .pages = std::exchange(chunk.pages, {})};
  for (const TablePage& page : layout.pages) layout.starts.push_back(page.first_row);
  return {std::move(layout), std::move(chunk)};
}

TableColumn ColumnOf(ArrowChunk chunk, uint64_t) { return {LayoutOf(chunk), std::move(chunk)}; }

TableColumn ColumnOf(BetonChunk chunk, uint64_t rows) {
  return {LayoutOf(chunk, rows), std::move(chunk)};
}

TableColumn ColumnOf(const CompressedChunk& chunk, uint64_t rows) {
  return {LayoutOf(chunk, rows), chunk};
}

TableRead PagesOf(const TableLayout& layout, uint64_t rows, uint64_t first, uint64_t end) {
  const std::vector<TablePage>& pages = layout.pages;
  const auto after = [&](uint64_t row) {  // the first page that begins behind this row
    return std::ranges::upper_bound(pages, row, {}, &TablePage::first_row);
  };
  const auto from = std::prev(after(first));
  const auto to = after(end - 1);
  TableRead read{.first_row = from->first_row};
  read.rows = (to == pages.end() ? rows : to->first_row) - from->first_row;
  const ByteRange dictionary{layout.ranges.front().offset, pages.front().range.offset};
  const ByteRange wanted{from->range.offset, std::prev(to)->range.end};
  if (!dictionary.empty() && dictionary.end < wanted.offset) {
    read.ranges = {dictionary, wanted};
  } else {
    read.ranges = {{std::min(dictionary.offset, wanted.offset), wanted.end}};
    if (dictionary.empty()) read.ranges = {wanted};
  }
  return read;
}

template <class Group>
TableGroup GroupOf(Group group) {
  TableGroup table{.rows = group.rows};
  for (auto& chunk : group.chunks) {
    table.columns.push_back(ColumnOf(std::move(chunk), group.rows));
  }
  return table;
}

}  // namespace

std::optional<TableFormat> TableFormatOf(std::string_view name) {
  if (name == "parquet") return TableFormat::kParquet;
  if (name == "arrow") return TableFormat::kArrow;
  if (name == "beton") return TableFormat::kBeton;
  if (CompressedRowsOf(name)) return TableFormat::kCompressed;
  return std::nullopt;
}

std::string GroupText(TableFormat format, uint64_t number) {
  if (format == TableFormat::kCompressed) return "";  // a shard is one
  const std::string_view what = format == TableFormat::kParquet ? "row group"
                                : format == TableFormat::kArrow ? "record batch"
                                                                : "group";
  return fmt::format("{} {} of ", what, number);
}

bool DecodesTogether(TableFormat format) { return format == TableFormat::kCompressed; }

Result<TableGroup> UnpackTableGroup(std::string_view format, std::string_view key,
                                    const std::vector<ByteRange>& fields) {
  if (format == "parquet") {
    FB_ASSIGN_OR_RETURN(ParquetGroup group, UnpackParquetGroup(key, fields));
    return GroupOf(std::move(group));
  }
  if (const auto rows = CompressedRowsOf(format)) {
    FB_ASSIGN_OR_RETURN(CompressedShard shard, UnpackCompressedShard(*rows, key, fields));
    return GroupOf(std::move(shard));
  }
  if (format == "beton") {
    FB_ASSIGN_OR_RETURN(BetonGroup group, UnpackBetonGroup(key, fields));
    return GroupOf(std::move(group));
  }
  FB_ASSIGN_OR_RETURN(ArrowBatch batch, UnpackArrowBatch(key, fields));
  return GroupOf(std::move(batch));
}

TableRead ReadOf(const TableColumn& column, uint64_t rows, uint64_t first, uint64_t end) {
  const TableLayout& layout = column.layout;
  if (layout.starts.empty() || (first == 0 && end == rows)) return {layout.ranges, 0, rows};
  if (const auto* arrow = std::get_if<ArrowChunk>(&column.chunk)) {
    return {ReadsOf(SliceOf(*arrow, first, end - first)), first, end - first};
  }
  if (const auto* beton = std::get_if<BetonChunk>(&column.chunk)) {
    return {ReadsOf(*beton, first, end), first, end - first};
  }
  return PagesOf(layout, rows, first, end);
}

Status DecodeTable(const TableChunk& chunk, const TableRead& read, ByteView bytes,
                   const Place& place, TableValues* out) {
  if (const auto* beton = std::get_if<BetonChunk>(&chunk)) {
    return DecodeBeton(*beton, read.first_row, read.rows, bytes, out);
  }
  const auto* arrow = std::get_if<ArrowChunk>(&chunk);
  if (arrow == nullptr) {
    return DecodeParquet(std::get<ParquetChunk>(chunk), read.rows, bytes, place, out);
  }
  if (read.rows == arrow->rows) return DecodeArrow(*arrow, bytes, place, out);
  return DecodeArrow(SliceOf(*arrow, read.first_row, read.rows), bytes, place, out);
}

Status DecodeTableGroup(std::span<const TableChunk> chunks, uint64_t rows, ByteView bytes,
                        const Place& place, std::span<TableValues* const> out) {
  std::vector<const CompressedChunk*> columns;
  columns.reserve(chunks.size());
  for (const TableChunk& chunk : chunks) columns.push_back(&std::get<CompressedChunk>(chunk));
  return DecodeCompressed(columns, rows, bytes, place, out);
}

Status TableIsReadable(const TableChunk& chunk) {
  if (std::holds_alternative<CompressedChunk>(chunk)) return {};
  if (std::holds_alternative<BetonChunk>(chunk)) return {};
  const auto* arrow = std::get_if<ArrowChunk>(&chunk);
  return arrow == nullptr ? ParquetIsReadable() : ArrowIsReadable(*arrow);
}

}  // namespace forebay::format
