// Element types by name, as arrays carry them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace forebay::ops {

// Bytes of one element; 0: no such type.
int64_t BytesOf(std::string_view dtype);

// Of an array; 0 where the type is unknown, a side is less than 1, or more than 2^40 bytes come
// out.
uint64_t BytesOf(std::string_view dtype, const std::vector<int64_t>& shape);

// To the nearest, halves to even; what is too large becomes infinity.
uint16_t ToFloat16(float value);
uint16_t ToBfloat16(float value);

}  // namespace forebay::ops
