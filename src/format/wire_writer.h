// Writes protocol buffers' wire format.
#pragma once

#include <cstdint>
#include <vector>

#include "format/little_endian.h"

namespace forebay::format {

class WireWriter {
 public:
  explicit WireWriter(std::vector<std::byte>* out) : out_(out) {}

  static constexpr uint64_t VarintBytes(uint64_t value) {
    uint64_t bytes = 1;
    for (; value >= 0x80; value >>= 7) ++bytes;
    return bytes;
  }
  // Of a field of bytes, with its number (below 16) and length.
  static constexpr uint64_t FieldBytes(uint64_t bytes) { return 1 + VarintBytes(bytes) + bytes; }

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_->push_back(static_cast<std::byte>(value | 0x80));
    out_->push_back(static_cast<std::byte>(value));
  }
  // What follows is a field of so many bytes.
  void Head(uint32_t number, uint64_t bytes) {
    Varint(uint64_t{number} << 3 | 2);
    Varint(bytes);
  }
  void Bytes(uint32_t number, ByteView bytes) {
    Head(number, bytes.size());
    Append(out_, bytes);
  }

 private:
  std::vector<std::byte>* const out_;
};

}  // namespace forebay::format
