// Numbers as containers keep them: little-endian, at any address.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "base/bytes.h"

namespace forebay::format {

static_assert(std::endian::native == std::endian::little);

// The caller has checked that the bytes are there.
template <class T>
T Load(ByteView bytes, size_t at = 0) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

inline void Append(std::vector<std::byte>* out, ByteView bytes) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}
template <class T>
void AppendWord(std::vector<std::byte>* out, T value) {
  Append(out, std::as_bytes(std::span(&value, 1)));
}

}  // namespace forebay::format
