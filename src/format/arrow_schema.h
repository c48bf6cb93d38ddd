// What the metadata of Arrow's IPC says: messages, schemas and record batches as flatbuffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/arrow.h"
#include "format/flatbuffer.h"

namespace forebay::format {

struct ArrowMessage {
  enum class Kind : uint8_t { kNone, kSchema, kDictionary, kBatch, kTensor, kSparseTensor };
  Kind kind = Kind::kNone;
  int version = 0;  // as the format numbers them: 4 is V5
  uint64_t body_bytes = 0;
  FlatTable header;
};

// Where a field's own node and its first buffer lie among those of a batch: in the order of the
// schema, with those of views behind.
struct ArrowPlace {
  uint32_t node = 0;
  uint32_t buffer = 0;
  uint32_t views = 0;  // fields of views ahead of it, whose buffers each batch counts
};

// A column that is exposed.
struct ArrowLeaf {
  std::string name;
  ArrowColumn column;
  std::string dtype;  // "": bytes
  std::vector<int64_t> shape;
  ArrowPlace place;
  std::vector<ArrowPlace> parents;
  int64_t dictionary = 0;  // of kIndices: its number
};

// What the batches of a dictionary hold.
struct ArrowDictionary {
  int64_t id = 0;
  ArrowLeaf leaf;
  ArrowPlace end;
};

struct ArrowSchema {
  std::vector<ArrowLeaf> leaves;
  std::vector<ArrowDictionary> dictionaries;
  uint64_t left_out = 0;                    // fields that do not come as arrays
  std::vector<std::string> left_out_first;  // which and why, as many as a ScanReport keeps
  ArrowPlace end;                           // how many there are
};

// `in` reads a message's metadata. Errors: kDataLoss, kUnimplemented (of before Arrow 0.8).
Result<ArrowMessage> ParseArrowMessage(FlatReader& in, const Place& place);
// Errors: kDataLoss, kUnimplemented (big-endian, a type that is not known, names twice).
Result<ArrowSchema> ParseArrowSchema(FlatReader& in, const FlatTable& schema, int version,
                                     const Place& place);
// `body`: where the batch's buffers lie. Errors: kDataLoss, kUnimplemented (a codec).
Result<ArrowBatch> ParseArrowBatch(FlatReader& in, const ArrowSchema& schema,
                                   const FlatTable& batch, ByteRange body, const Place& place);

// How many buffers a column has of its own, of views at least.
size_t ArrowBuffersOf(ArrowColumn::Kind kind);
// What spans them; empty where they are.
ByteRange ArrowRangeOf(const ArrowChunk& chunk);

// What the offsets of kBytes and kList lead to at most.
uint64_t CutsEnd(const ArrowChunk& chunk);

// The version that a message or footer says. Errors: kUnimplemented.
Result<int> ArrowVersionOf(const FlatTable& table, const Place& place);

}  // namespace forebay::format
