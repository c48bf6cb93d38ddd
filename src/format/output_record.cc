#include "format/output_record.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <limits>

#include "format/damage.h"
#include "format/little_endian.h"

namespace forebay::format {
namespace {

struct NumberType {
  std::string_view name;
  std::string_view descr;  // NumPy's
  uint64_t bytes;
};

constexpr NumberType kTypes[] = {
    {"bool", "|b1", 1},  {"uint8", "|u1", 1},   {"int8", "|i1", 1},    {"uint16", "<u2", 2},
    {"int16", "<i2", 2}, {"uint32", "<u4", 4},  {"int32", "<i4", 4},   {"uint64", "<u8", 8},
    {"int64", "<i8", 8}, {"float16", "<f2", 2}, {"float32", "<f4", 4}, {"float64", "<f8", 8},
};

const NumberType* Find(std::string_view name) {
  for (const NumberType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

template <class T, class Out>
void Take(ByteView bytes, std::vector<Out>* out) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    out->push_back(static_cast<Out>(Load<T>(bytes, at)));
  }
}

float FromHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const float sign = half >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent != 31) return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  // The bits themselves, so that a NaN stays the one it was.
  return std::bit_cast<float>(uint32_t{half} >> 15 << 31 | uint32_t{0xff} << 23 |
                              static_cast<uint32_t>(fraction) << 13);
}

// Those that both take.
template <class Out>
bool TakeSmall(const OutputField& field, std::vector<Out>* out) {
  if (field.dtype == "bool" || field.dtype == "uint8") return Take<uint8_t>(field.bytes, out), true;
  if (field.dtype == "int8") return Take<int8_t>(field.bytes, out), true;
  if (field.dtype == "uint16") return Take<uint16_t>(field.bytes, out), true;
  if (field.dtype == "int16") return Take<int16_t>(field.bytes, out), true;
  return false;
}

Status NotThese(const OutputField& field, std::string_view wanted) {
  return Status(Code::kInvalidArgument,
                fmt::format("field '{}' is of {}, not of {}", field.name,
                            field.dtype.empty() ? "bytes" : field.dtype, wanted));
}

}  // namespace

uint64_t BytesOfType(std::string_view dtype) {
  const NumberType* type = Find(dtype);
  return type == nullptr ? 0 : type->bytes;
}

std::string_view KnownType(std::string_view dtype) {
  const NumberType* type = Find(dtype);
  return type == nullptr ? "" : type->name;
}

Result<std::vector<int64_t>> IntegersOf(const OutputField& field) {
  std::vector<int64_t> numbers;
  if (TakeSmall(field, &numbers)) return numbers;
  if (field.dtype == "int32") return Take<int32_t>(field.bytes, &numbers), numbers;
  if (field.dtype == "uint32") return Take<uint32_t>(field.bytes, &numbers), numbers;
  if (field.dtype == "int64") return Take<int64_t>(field.bytes, &numbers), numbers;
  if (field.dtype != "uint64") return NotThese(field, "integers");
  Take<uint64_t>(field.bytes, &numbers);
  for (const int64_t number : numbers) {
    if (number < 0) {
      return Status(Code::kInvalidArgument, fmt::format("field '{}' holds {}, which no int64 can",
                                                        field.name, static_cast<uint64_t>(number)));
    }
  }
  return numbers;
}

Result<std::vector<float>> FloatsOf(const OutputField& field) {
  std::vector<float> numbers;
  if (TakeSmall(field, &numbers)) return numbers;
  if (field.dtype == "float32") return Take<float>(field.bytes, &numbers), numbers;
  if (field.dtype != "float16") return NotThese(field, "float32 or what fits it");
  for (size_t at = 0; at + 2 <= field.bytes.size(); at += 2) {
    numbers.push_back(FromHalf(Load<uint16_t>(field.bytes, at)));
  }
  return numbers;
}

std::vector<std::byte> NpyFileOf(const OutputField& field) {
  const NumberType* type = Find(field.dtype);
  std::string shape;
  for (const int64_t size : field.shape) shape += fmt::format("{}, ", size);
  // NumPy writes "(3,)" for one dimension and "(3, 4)" for two.
  if (field.shape.size() == 1) shape.resize(shape.size() - 1);
  if (field.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string head = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type == nullptr ? "|u1" : type->descr, shape);
  constexpr size_t kBefore = 10;  // magic, version, length
  head.resize(PaddedTo(kBefore + head.size() + 1, 64) - kBefore - 1, ' ');
  head += '\n';
  std::vector<std::byte> file;
  file.reserve(kBefore + head.size() + field.bytes.size());
  Append(&file, AsBytes(std::string_view("\x93NUMPY\x01\x00", 8)));
  AppendWord(&file, static_cast<uint16_t>(head.size()));
  Append(&file, AsBytes(head));
  Append(&file, field.bytes);
  return file;
}

}  // namespace forebay::format
