// Protocol buffers' wire format, walked without copying.
#pragma once

#include <cstdint>
#include <optional>

#include "format/damage.h"

namespace forebay::format {

// The fields of one message, in the order they stand.
class WireReader {
 public:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  struct Field {
    uint32_t number = 0;
    Type type = Type::kVarint;
    uint64_t value = 0;  // of a varint and of fixed numbers, as bits
    ByteView bytes;      // of kBytes, and of fixed numbers
  };

  explicit WireReader(ByteView message, const Place& place = {})
      : message_(message), place_(place) {}

  bool AtEnd() const { return at_ == message_.size(); }
  Place place() const { return place_ + at_; }
  // Where the bytes of the last field lie.
  Place PlaceOf(const Field& field) const {
    return place_ + static_cast<uint64_t>(field.bytes.data() - message_.data());
  }

  // kDataLoss: the message is cut, or no valid one. Groups are refused.
  Status Next(Field* field);
  // A bare varint, of a packed list.
  Result<uint64_t> Varint();

 private:
  Status NextVarint(uint64_t* value);

  const ByteView message_;
  const Place place_;
  size_t at_ = 0;
};

}  // namespace forebay::format
