// Shards of rows that are compressed as a whole, by gzip, zlib or zstd: there is no random access
// to them, so each is a table of one group of rows (table.h), read and unpacked at once for all its
// rows that are drawn together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/damage.h"
#include "format/record.h"
#include "format/table_values.h"

namespace forebay::format {

// What is in them.
enum class CompressedRows : uint8_t { kMds, kJsonLines, kCsv, kCsvNoHeader, kLibsvm };

inline constexpr std::string_view kCompressedPrefix = "compressed-";
std::vector<std::string_view> CompressedFormatNames();
// Of a catalog's format ("compressed-mds"); nullopt: it is no such.
std::optional<CompressedRows> CompressedRowsOf(std::string_view name);

// One column of such a shard.
struct CompressedChunk {
  CompressedRows rows = CompressedRows::kMds;
  uint64_t unpacked = 0;     // bytes of the shard
  uint32_t crc32c = 0;       // of the shard as it is stored
  uint32_t column = 0;       // its number among the shard's
  uint32_t value_bytes = 0;  // of each value; 0: they differ
  uint64_t bytes = 0;        // of all values
  ByteRange range;           // of all of the shard
};

struct CompressedShard {
  uint64_t rows = 0;
  std::vector<CompressedChunk> chunks;  // of all columns
};

std::string PackCompressedShard(const CompressedShard& shard);
// `fields`: where the columns lie, which is everywhere. Errors: kDataLoss, kUnimplemented.
Result<CompressedShard> UnpackCompressedShard(CompressedRows rows, std::string_view packed,
                                              const std::vector<ByteRange>& fields);
TableLayout LayoutOf(const CompressedChunk& chunk, uint64_t rows);

// Reads and unpacks a shard, and finds its rows by `scan`: one record for all of them, whose fields
// are the columns and whose key is PackCompressedShard's. Errors: those of Unpack and of `scan`;
// kUnimplemented: it is not compressed; kDataLoss: rows of different columns or types.
using ScanRows =
    std::function<Status(const Shard& shard, const OnRecord& on_record, ScanReport* report)>;
Status ScanCompressed(CompressedRows rows, const Shard& shard, const ScanRows& scan,
                      const OnRecord& on_record, ScanReport* report);

// The values of columns of one shard, `bytes` being all of it as stored. Errors: kDataLoss.
Status DecodeCompressed(std::span<const CompressedChunk* const> columns, uint64_t rows,
                        ByteView bytes, const Place& place, std::span<TableValues* const> out);

}  // namespace forebay::format
