// A 128-bit hash of bytes for identity and for finding damage; not for adversaries.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace forebay {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  std::string ToHex() const;  // 32 characters
};

// Two independent multiply-xorshift lanes over 8-byte words, the length mixed in last. Version 1,
// frozen: catalogs carry it.
Hash128 HashBytes(ByteView bytes);

}  // namespace forebay
