// Parquet: tables in row groups, of which each column is a chunk of pages. A scan finds where the
// chunks lie, by the footer alone; fetched chunks are decoded to columns. What reads footers and
// pages is Arrow, in a library of its own that is opened on first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/raw_bytes.h"
#include "format/damage.h"
#include "format/record.h"

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

// A page of a chunk, where the file says where its pages lie.
struct ParquetPage {
  ByteRange range;  // in the shard, its header included
  uint64_t first_row = 0;
  bool operator==(const ParquetPage&) const = default;
};

struct ParquetChunk {
  ParquetColumn column;
  uint8_t codec = 0;               // as the format numbers them
  bool always_compressed = false;  // of pages whose header may say otherwise (old writers)
  uint64_t entries = 0;            // values and nulls; of lists also empty ones
  uint64_t uncompressed = 0;       // bytes, as the file says
  ByteRange range;                 // in the shard: its dictionary, and its pages
  std::vector<ParquetPage> pages;  // of growing rows and offsets; none: nothing is known
  bool operator==(const ParquetChunk&) const = default;
};

// Of some rows of a chunk: one value for each.
struct ParquetValues {
  uint64_t rows = 0;
  RawBytes values;                // one after the other; of a null that has a size: zeros
  std::vector<uint64_t> offsets;  // rows + 1, where they differ in size
  std::vector<uint8_t> valid;     // a row's 0: it is null; empty: none is
  uint64_t bytes() const {
    return values.capacity() + offsets.capacity() * sizeof(uint64_t) + valid.capacity();
  }
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
                     ParquetValues* out);

// OK when Arrow can be loaded; else kUnimplemented, saying what to install.
Status ParquetIsReadable();

}  // namespace forebay::format
