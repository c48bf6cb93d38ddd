// Protocol buffers' wire format, read in place: bounded, without a copy, without recursion.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace forebay::ops {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Of one message. Whatever returns false has met damage: bytes that are cut short, a varint of more
// than 64 bits, a tag that is none, or a group.
class WireReader {
 public:
  explicit WireReader(ByteView bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  ByteView rest() const { return {reinterpret_cast<const std::byte*>(at_), left()}; }

  bool Tag(uint32_t* field, WireType* type) {
    uint64_t tag = 0;
    if (!Varint(&tag)) return false;
    const auto number = tag >> 3;
    constexpr uint64_t kFieldMost = (uint64_t{1} << 29) - 1;
    if (number == 0 || number > kFieldMost) return false;
    *field = static_cast<uint32_t>(number);
    *type = static_cast<WireType>(tag & 7);
    return true;
  }

  bool Varint(uint64_t* value) {
    if (at_ != end_ && *at_ < 0x80) {
      *value = *at_++;
      return true;
    }
    uint64_t result = 0;
    for (int shift = 0; at_ != end_ && shift < 70; shift += 7) {
      const uint64_t byte = *at_++;
      if (shift == 63 && byte > 1) return false;
      result |= (byte & 0x7F) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  bool Bytes(ByteView* bytes) {
    uint64_t size = 0;
    if (!Varint(&size) || size > left()) return false;
    *bytes = {reinterpret_cast<const std::byte*>(at_), static_cast<size_t>(size)};
    at_ += size;
    return true;
  }

  // The next field, where it is bytes, has this number, below 16, and fewer than 128 of them,
  // written as all writers do. False: it is another, and nothing was taken.
  bool Short(uint32_t field, ByteView* bytes) {
    if (left() < 2 || at_[0] != (field << 3 | static_cast<uint8_t>(WireType::kBytes))) return false;
    const size_t size = at_[1];
    if (size >= 0x80 || size > left() - 2) return false;
    *bytes = {reinterpret_cast<const std::byte*>(at_ + 2), size};
    at_ += 2 + size;
    return true;
  }

  bool Fixed32(uint32_t* value) {
    static_assert(std::endian::native == std::endian::little);
    if (left() < sizeof(*value)) return false;
    std::memcpy(value, at_, sizeof(*value));
    at_ += sizeof(*value);
    return true;
  }

  bool Advance(size_t count) {
    if (left() < count) return false;
    at_ += count;
    return true;
  }

  // The value of a field that nobody wants.
  bool Skip(WireType type) {
    uint64_t number = 0;
    ByteView bytes;
    switch (type) {
      case WireType::kVarint:
        return Varint(&number);
      case WireType::kBytes:
        return Bytes(&bytes);
      case WireType::kFixed32:
        return Advance(4);
      case WireType::kFixed64:
        return Advance(8);
    }
    return false;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace forebay::ops
