// Arrow IPC: files (with a footer) and streams of record batches, of which each column is some
// buffers, side by side in the batch's body. A scan finds where the buffers lie, by the metadata
// alone; fetched buffers are decoded to columns.
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
struct ArrowColumn {
  enum class Kind : uint8_t {
    kValues,   // of one size
    kBytes,    // offsets and bytes: text, binary
    kViews,    // the same as string_view and binary_view keep it
    kList,     // offsets and elements: of numbers
    kArrays,   // `each` elements a row
    kIndices,  // numbers of values that lie in a dictionary
  };
  Kind kind = Kind::kValues;
  bool wide = false;  // its offsets have 64 bits, not 32; of kIndices: they have a sign
  uint32_t bits = 0;  // of a value or element as it is stored; 1: bools. 0 of kBytes and kViews
  uint32_t each = 1;  // of kArrays
  uint32_t indexed_bytes = 0;  // of kIndices: of a value of the dictionary; 0: they differ
  uint32_t parents = 0;        // structs around it whose nulls are its own
  bool operator==(const ArrowColumn&) const = default;

  bool has_offsets() const { return kind == Kind::kBytes || kind == Kind::kList; }
  bool ragged() const { return has_offsets() || value_bytes() == 0; }
  // Of what comes out for a row, of a list for an element; 0: they differ.
  uint32_t value_bytes() const {
    return kind == Kind::kIndices ? indexed_bytes : (bits == 1 ? 1 : bits / 8) * each;
  }
};

enum class ArrowCodec : uint8_t { kNone, kLz4Frame, kZstd };

// A column of a record batch, or of some of its rows.
struct ArrowChunk {
  ArrowColumn column;
  ArrowCodec codec = ArrowCodec::kNone;
  uint64_t rows = 0;
  uint64_t entries = 0;       // rows; of lists elements that the buffer of elements holds
  uint64_t uncompressed = 0;  // bytes, about
  ByteRange range;            // in the shard: spans its own buffers
  // Of kIndices: one, of kValues, kBytes or kViews, maybe of no rows.
  std::vector<ArrowChunk> dictionary;
  // In the shard, each empty where there is none: validity bitmaps of the parents (maybe outside of
  // `range`), and its own; then of kValues and kIndices: values. Of kBytes: offsets, bytes. Of
  // kViews: views, then any number of buffers. Of kList: offsets, validity of elements, elements.
  // Of kArrays: validity of elements, elements.
  std::vector<ByteRange> buffers;
  // Of kBytes and kList: so many bytes or elements lie ahead of what the buffer of them holds.
  uint64_t skipped = 0;
  // Rows, a multiple of 8: at their multiples it may be cut. 0: it is not.
  uint64_t step = 0;
  std::vector<uint64_t> cuts;  // of kBytes and kList: what offsets say there, and at the end
  bool operator==(const ArrowChunk&) const = default;
};

// What has to be known of a record batch beside where its columns lie.
struct ArrowBatch {
  uint64_t rows = 0;
  std::vector<ArrowChunk> chunks;  // in the order of the record's fields
};

struct ArrowLimits {
  uint64_t message_bytes = 8ULL << 20;  // of the metadata of one message
  uint64_t footer_bytes = 256ULL << 20;
  uint64_t buffer_bytes = 1ULL << 30;    // unpacked
  uint64_t free_ratio_bytes = 64 << 20;  // up to which any ratio is believed
  uint64_t ratio = 1000;                 // unpacked to packed, above that
  uint64_t fields = 1 << 16;             // of a schema, all levels together
  uint64_t cuts = 1 << 20;               // of a record batch
  int depth = 64;
};

// Finds the record batches of a file or stream, each as a record whose fields are the columns and
// whose key is PackArrowBatch's. Errors: kDataLoss, kUnimplemented (big-endian, types that are not
// known), and those of reading.
Status ScanArrow(const Shard& shard, const OnRecord& on_record, ScanReport* report);

// Whether a shard that begins so may be a stream: its first message is a schema.
bool IsArrowStream(ByteView head, uint64_t shard_size);

std::string PackArrowBatch(const ArrowBatch& batch);
// `fields`: where the columns lie. Errors: kDataLoss, kUnimplemented (of another version).
Result<ArrowBatch> UnpackArrowBatch(std::string_view packed, const std::vector<ByteRange>& fields);

// Whether its buffers can hold its rows. `name`: the column's. Errors: kDataLoss.
Status CheckArrowChunk(const ArrowChunk& chunk, std::string_view name, const Place& place);

// Some of its rows: `first` is a multiple of its step, and the last row is its last one or ends at
// a multiple.
ArrowChunk SliceOf(const ArrowChunk& chunk, uint64_t first, uint64_t rows);

// What is read of a column, in the order in which DecodeArrow takes it.
std::vector<ByteRange> ReadsOf(const ArrowChunk& chunk);
TableLayout LayoutOf(const ArrowChunk& chunk);

// Decodes a column from the bytes of ReadsOf, one range after the other. Of `place`
// the shard's name is used. Errors: kDataLoss with the buffer's offset; kUnimplemented (LZ4 without
// Arrow on this machine).
Status DecodeArrow(const ArrowChunk& chunk, ByteView bytes, const Place& place, TableValues* out);

// OK when its codec can be undone; else kUnimplemented, saying what to install.
Status ArrowIsReadable(const ArrowChunk& chunk);

}  // namespace forebay::format
