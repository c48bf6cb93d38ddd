// Parquet: tables in row groups, of which each column is a chunk of pages. A scan finds where the
// chunks lie, by the footer alone; fetched chunks are decoded to columns. What reads footers and
// pages is Arrow, in a library of its own that is opened on first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/damage.h"
#include "format/record.h"
#include "format/table_values.h"

namespace forebay::format {

// How a column's values are stored, and what comes of them.
struct ParquetColumn {
  enum class Stored : uint8_t {  // numbered as in the format
    kBool,
    kInt32,
    kInt64,
    kInt96,
    kFloat,
    kDouble,
    kBytes,
    kFixed
  };
  Stored stored = Stored::kBytes;
  uint32_t fixed_bytes = 0;  // of kFixed
  uint32_t value_bytes = 0;  // of a value that comes out; 0: they differ in size
  uint8_t max_definition = 0;
  uint8_t max_repetition = 0;   // 1: of lists
  uint8_t list_definition = 0;  // of a list's entries: from this level on they are elements
  bool operator==(const ParquetColumn&) const = default;
};

struct ParquetChunk {
  ParquetColumn column;
  uint8_t codec = 0;               // as the format numbers them
  bool always_compressed = false;  // of pages whose header may say otherwise (old writers)
  uint64_t entries = 0;            // values and nulls; of lists also empty ones
  uint64_t uncompressed = 0;       // bytes, as the file says
  ByteRange range;                 // in the shard: its dictionary, and its pages
  std::vector<TablePage> pages;    // of growing rows and offsets; none: nothing is known
  bool operator==(const ParquetChunk&) const = default;
};

// Finds the row groups of a file, each as a record whose fields are the columns' chunks and whose
// key is PackParquetGroup's. Errors: kDataLoss, kUnimplemented (encrypted, spread over files, a
// codec that is not there, no Arrow on this machine), and those of reading.
Status ScanParquet(const Shard& shard, const OnRecord& on_record, ScanReport* report);

inline constexpr uint64_t kParquetBytesMost = uint64_t{1} << 50;  // that a chunk is believed to be

// What has to be known of a row group beside where its chunks lie.
struct ParquetGroup {
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // in the order of the record's fields
};
std::string PackParquetGroup(const ParquetGroup& group);
// `fields`: where the chunks lie. Errors: kDataLoss.
Result<ParquetGroup> UnpackParquetGroup(std::string_view packed,
                                        const std::vector<ByteRange>& fields);

// Decodes whole pages of a chunk, one after the other, in `rows` rows. `bytes` begin with the
// dictionary's page, where there is one. Checksums are verified where there are any. Errors:
// kDataLoss with the page's offset, counted from `place`; kUnimplemented.
Status DecodeParquet(const ParquetChunk& chunk, uint64_t rows, ByteView bytes, const Place& place,
                     TableValues* out);

// OK when Arrow can be loaded; else kUnimplemented, saying what to install.
Status ParquetIsReadable();

// Fills `into` with what one LZ4 frame becomes. Errors: kDataLoss (damaged, or of another size),
// kUnimplemented (no Arrow on this machine).
Status UnpackLz4Frame(ByteView packed, MutableBytes into);

}  // namespace forebay::format
