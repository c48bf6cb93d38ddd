#include "format/table.h"

#include <fmt/core.h>

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
  return {std::move(layout), std::move(chunk)};
}

TableColumn ColumnOf(ArrowChunk chunk, uint64_t) { return {LayoutOf(chunk), std::move(chunk)}; }

TableColumn ColumnOf(const CompressedChunk& chunk, uint64_t rows) {
  return {LayoutOf(chunk, rows), chunk};
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
  if (CompressedRowsOf(name)) return TableFormat::kCompressed;
  return std::nullopt;
}

std::string GroupText(TableFormat format, uint64_t number) {
  if (format == TableFormat::kCompressed) return "";  // a shard is one
  return fmt::format("{} {} of ", format == TableFormat::kParquet ? "row group" : "record batch",
                     number);
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
  FB_ASSIGN_OR_RETURN(ArrowBatch batch, UnpackArrowBatch(key, fields));
  return GroupOf(std::move(batch));
}

Status DecodeTable(const TableChunk& chunk, uint64_t rows, ByteView bytes, const Place& place,
                   TableValues* out) {
  if (const auto* arrow = std::get_if<ArrowChunk>(&chunk)) {
    return DecodeArrow(*arrow, rows, bytes, place, out);
  }
  return DecodeParquet(std::get<ParquetChunk>(chunk), rows, bytes, place, out);
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
  const auto* arrow = std::get_if<ArrowChunk>(&chunk);
  return arrow == nullptr ? ParquetIsReadable() : ArrowIsReadable(arrow->codec);
}

}  // namespace forebay::format
