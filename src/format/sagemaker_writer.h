// Writes the protocol buffer that SageMaker's algorithms take: aialgs.data.Record.
#pragma once

#include <cstdint>
#include <vector>

#include "format/output_record.h"

namespace forebay::format {

// A tensor where only these positions of the dense one are not zero.
struct SparseOutput {
  std::vector<uint64_t> keys;  // row-major
  std::vector<uint64_t> shape;
};

struct SageMakerOutput {
  OutputField field;
  const SparseOutput* sparse = nullptr;  // field.bytes are the values at its keys
};

// float32 and float16 become a Float32Tensor, float64 a Float64Tensor, integers an Int32Tensor (an
// int64 has to fit), anything else Bytes. Both lists in the order of their names. kInvalidArgument:
// an integer that does not fit, a name twice.
Status AppendSageMakerRecord(std::vector<SageMakerOutput> features,
                             std::vector<SageMakerOutput> labels, std::string_view uid,
                             std::vector<std::byte>* out);

}  // namespace forebay::format
