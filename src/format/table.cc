#include "format/table.h"

#include <utility>

namespace forebay::format {
namespace {

TableColumn ColumnOf(ParquetChunk chunk) {
  TableLayout layout{.value_bytes = chunk.column.value_bytes,
                     .list = chunk.column.max_repetition > 0,
                     .entries = chunk.entries,
                     .uncompressed = chunk.uncompressed,
                     .ranges = {chunk.range},
                     .pages = std::exchange(chunk.pages, {})};
  return {std::move(layout), std::move(chunk)};
}

TableColumn ColumnOf(ArrowChunk chunk) { return {LayoutOf(chunk), std::move(chunk)}; }

template <class Group>
TableGroup GroupOf(Group group) {
  TableGroup table{.rows = group.rows};
  for (auto& chunk : group.chunks) table.columns.push_back(ColumnOf(std::move(chunk)));
  return table;
}

}  // namespace

std::optional<TableFormat> TableFormatOf(std::string_view name) {
  if (name == "parquet") return TableFormat::kParquet;
  if (name == "arrow") return TableFormat::kArrow;
  return std::nullopt;
}

std::string_view GroupName(TableFormat format) {
  return format == TableFormat::kParquet ? "row group" : "record batch";
}

Result<TableGroup> UnpackTableGroup(TableFormat format, std::string_view key,
                                    const std::vector<ByteRange>& fields) {
  if (format == TableFormat::kParquet) {
    FB_ASSIGN_OR_RETURN(ParquetGroup group, UnpackParquetGroup(key, fields));
    return GroupOf(std::move(group));
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

Status TableIsReadable(const TableChunk& chunk) {
  const auto* arrow = std::get_if<ArrowChunk>(&chunk);
  return arrow == nullptr ? ParquetIsReadable() : ArrowIsReadable(arrow->codec);
}

}  // namespace forebay::format
