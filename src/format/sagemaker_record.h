// The protocol buffer that SageMaker's algorithms keep in RecordIO: named tensors, dense or sparse.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/damage.h"

namespace forebay::format {

struct SageMakerValue {
  enum class Kind : uint8_t { kNone, kFloat32, kFloat64, kInt32, kBytes };

  std::string_view name;  // "values" for the one of a record that has but one
  Kind kind = Kind::kNone;
  // Row-major positions of `values` in the dense tensor; a row of zeros alone has none, and no
  // values either.
  bool sparse = false;
  // Little-endian, at any address: in the record where they lie in one piece, else in `joined`.
  ByteView values;
  std::vector<uint64_t> keys;
  std::vector<uint64_t> shape;
  std::vector<ByteView> bytes;  // of kBytes
  std::string_view content_type;

  std::vector<std::byte> joined;

  uint64_t count() const;  // of values
};

struct SageMakerRecord {
  std::vector<SageMakerValue> features;
  std::vector<SageMakerValue> labels;
  std::string_view uid;
  std::string_view metadata;
  std::string_view configuration;
};

inline constexpr uint64_t kMaxSageMakerRecordBytes = uint64_t{512} << 20;

// Takes the payload of a RecordIO record apart. What `record` held is replaced, its memory used
// again; views point into the payload. Of names that occur twice the last counts. kDataLoss: no
// such message; a sparse tensor without shape, with keys beyond it, or with another count of them.
Status OpenSageMakerRecord(ByteView payload, SageMakerRecord* record, const Place& place = {});

}  // namespace forebay::format
