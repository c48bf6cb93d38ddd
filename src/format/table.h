// Tables whatever their format: groups of rows (Parquet's row groups, Arrow's record batches), of
// which each column is read and decoded by itself; samples of FFCV's files; or shards that are
// compressed as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/arrow.h"
#include "format/beton_table.h"
#include "format/compressed.h"
#include "format/parquet.h"
#include "format/table_values.h"

namespace forebay::format {

enum class TableFormat : uint8_t { kParquet, kArrow, kBeton, kCompressed };

// Of a catalog's format; nullopt: its records are no groups of rows.
std::optional<TableFormat> TableFormatOf(std::string_view name);
// "row group 3 of ", "record batch 3 of ": what a group is in its shard.
std::string GroupText(TableFormat format, uint64_t number);
// Whether all columns of a group are decoded together.
bool DecodesTogether(TableFormat format);

// What decoding a column has to know.
using TableChunk = std::variant<ParquetChunk, ArrowChunk, BetonChunk, CompressedChunk>;

struct TableColumn {
  TableLayout layout;
  TableChunk chunk;  // without pages
};

// For rows [first, end) of the group's `rows`: `first` is one of the column's starts, `end` another
// or the last, or what is between them is read too.
TableRead ReadOf(const TableColumn& column, uint64_t rows, uint64_t first, uint64_t end);

struct TableGroup {
  uint64_t rows = 0;
  std::vector<TableColumn> columns;  // in the order of the record's fields
};

// Of a record of a catalog of this format: its key, and where its fields lie. Errors: kDataLoss,
// kUnimplemented.
Result<TableGroup> UnpackTableGroup(std::string_view format, std::string_view key,
                                    const std::vector<ByteRange>& fields);

// Decodes the bytes of what ReadOf said, one range after the other. Errors: kDataLoss with the
// offset, in the shard or counted from `place`; kUnimplemented. Not of what decodes together.
Status DecodeTable(const TableChunk& chunk, const TableRead& read, ByteView bytes,
                   const Place& place, TableValues* out);

// The same of all these columns of a group; of what decodes together alone.
Status DecodeTableGroup(std::span<const TableChunk> chunks, uint64_t rows, ByteView bytes,
                        const Place& place, std::span<TableValues* const> out);

// OK when it can be decoded on this machine; else kUnimplemented, saying what to install.
Status TableIsReadable(const TableChunk& chunk);

}  // namespace forebay::format
