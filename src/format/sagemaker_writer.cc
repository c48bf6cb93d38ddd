#include "format/sagemaker_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "format/wire_writer.h"

namespace forebay::format {
namespace {

// Numbers of Value's fields, and of a tensor's.
constexpr uint32_t kFloat32 = 2, kFloat64 = 3, kInt32 = 7, kBytes = 9;
constexpr uint32_t kValues = 1, kKeys = 2, kShape = 3;

struct Tensor {
  uint32_t kind = kBytes;
  std::vector<std::byte> values;  // packed
};

Result<Tensor> TensorOf(const OutputField& field) {
  Tensor tensor;
  const std::string_view type = field.dtype;
  if (type == "float32" || type == "float16") {
    FB_ASSIGN_OR_RETURN(const std::vector<float> numbers, FloatsOf(field));
    tensor.kind = kFloat32;
    Append(&tensor.values, std::as_bytes(std::span(numbers)));
  } else if (type == "float64") {
    tensor.kind = kFloat64;
    Append(&tensor.values, field.bytes);
  } else if (BytesOfType(type) != 0) {
    FB_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, IntegersOf(field));
    tensor.kind = kInt32;
    WireWriter packed(&tensor.values);
    for (const int64_t number : numbers) {
      if (number != static_cast<int32_t>(number)) {
        return Status(Code::kInvalidArgument,
                      fmt::format("field '{}' holds {}: SageMaker's records have integers of 32 "
                                  "bits alone",
                                  field.name, number));
      }
      packed.Varint(static_cast<uint64_t>(number));
    }
  }
  return tensor;
}

void AppendVarints(uint32_t number, const std::vector<uint64_t>& values,
                   std::vector<std::byte>* out) {
  if (values.empty()) return;
  std::vector<std::byte> packed;
  WireWriter list(&packed);
  for (const uint64_t value : values) list.Varint(value);
  WireWriter(out).Bytes(number, packed);
}

Result<std::vector<std::byte>> ValueOf(const SageMakerOutput& output) {
  std::vector<std::byte> inner;
  FB_ASSIGN_OR_RETURN(const Tensor tensor, TensorOf(output.field));
  if (tensor.kind == kBytes) {
    WireWriter(&inner).Bytes(kValues, output.field.bytes);
  } else {
    if (!tensor.values.empty()) WireWriter(&inner).Bytes(kValues, tensor.values);
    if (output.sparse != nullptr) {
      AppendVarints(kKeys, output.sparse->keys, &inner);
      AppendVarints(kShape, output.sparse->shape, &inner);
    } else if (output.field.shape.size() > 1) {  // of a vector it is its length
      AppendVarints(kShape, {output.field.shape.begin(), output.field.shape.end()}, &inner);
    }
  }
  std::vector<std::byte> value;
  WireWriter(&value).Bytes(tensor.kind, inner);
  return value;
}

Status AppendMap(uint32_t number, std::vector<SageMakerOutput>& entries,
                 std::vector<std::byte>* out) {
  const auto name = [](const SageMakerOutput& output) { return output.field.name; };
  std::ranges::sort(entries, {}, name);
  const auto twice = std::ranges::adjacent_find(entries, {}, name);
  if (twice != entries.end()) {
    return Status(Code::kInvalidArgument, fmt::format("two fields '{}'", twice->field.name));
  }
  for (const SageMakerOutput& output : entries) {
    FB_ASSIGN_OR_RETURN(const std::vector<std::byte> value, ValueOf(output));
    WireWriter entry(out);
    entry.Head(number, WireWriter::FieldBytes(output.field.name.size()) +
                           WireWriter::FieldBytes(value.size()));
    entry.Bytes(1, AsBytes(output.field.name));
    entry.Bytes(2, value);
  }
  return {};
}

}  // namespace

Status AppendSageMakerRecord(std::vector<SageMakerOutput> features,
                             std::vector<SageMakerOutput> labels, std::string_view uid,
                             std::vector<std::byte>* out) {
  FB_RETURN_IF_ERROR(AppendMap(1, features, out));
  FB_RETURN_IF_ERROR(AppendMap(2, labels, out));
  if (!uid.empty()) WireWriter(out).Bytes(3, AsBytes(uid));
  return {};
}

}  // namespace forebay::format
