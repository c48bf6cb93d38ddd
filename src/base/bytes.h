// Views of bytes, and ranges. Ranges are half-open everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"

namespace forebay {

using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct ByteRange {
  uint64_t offset = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - offset; }
  bool empty() const { return end == offset; }
  bool Contains(const ByteRange& r) const { return offset <= r.offset && r.end <= end; }
  auto operator<=>(const ByteRange&) const = default;
};

// "2GiB", "500 KB", "1048576" -> bytes. KB = 1000, KiB = 1024; a bare number is bytes; fractions
// are allowed ("1.1GiB": what is left of a byte is cut off).
Result<uint64_t> ParseSize(std::string_view text);
// 1536 -> "1.5 KiB"
std::string FormatSize(uint64_t bytes);

}  // namespace forebay
