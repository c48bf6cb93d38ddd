// Numbers as containers keep them: little-endian, at any address.
#pragma once

#include <bit>
#include <cstring>

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

}  // namespace forebay::format
