// A record that is to be written, as every writer of shards takes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::format {

struct OutputField {
  std::string_view name;
  ByteView bytes;
  // As in FoundField: of numbers in C order, little-endian, their type and the array's shape. "":
  // bytes.
  std::string_view dtype;
  std::vector<int64_t> shape;
};

// What a number of this type takes; 0: none that is known.
uint64_t BytesOfType(std::string_view dtype);
// The same name, which lives for ever; "" where there is no such type.
std::string_view KnownType(std::string_view dtype);
// Every number of a field as an int64. kInvalidArgument: no integers, or one that does not fit.
Result<std::vector<int64_t>> IntegersOf(const OutputField& field);
// Every number as a float32, where that keeps it: of float32, float16 and small integers.
Result<std::vector<float>> FloatsOf(const OutputField& field);

// A .npy file of such numbers.
std::vector<std::byte> NpyFileOf(const OutputField& field);

}  // namespace forebay::format
