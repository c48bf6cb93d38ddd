#include "format/wire.h"

#include <fmt/core.h>

#include "format/little_endian.h"

namespace forebay::format {

Status WireReader::NextVarint(uint64_t* value) {
  constexpr size_t kMaxBytes = 10;
  uint64_t result = 0;
  for (size_t i = 0; i < kMaxBytes && at_ + i < message_.size(); ++i) {
    const auto byte = std::to_integer<uint64_t>(message_[at_ + i]);
    result |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    at_ += i + 1;
    *value = result;
    return {};
  }
  return Damaged(place(), "a number of at most 10 bytes", "one without an end");
}

Result<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  FB_RETURN_IF_ERROR(NextVarint(&value));
  return value;
}

Status WireReader::Next(Field* field) {
  const Place start = place();
  uint64_t tag = 0;
  FB_RETURN_IF_ERROR(NextVarint(&tag));
  field->bytes = {};
  const uint64_t type = tag & 7;
  const uint64_t number = tag >> 3;
  if (number == 0 || number >= uint64_t{1} << 29) {
    return Damaged(start, "a field's number", fmt::format("{}", number));
  }
  field->number = static_cast<uint32_t>(number);
  field->type = static_cast<Type>(type);
  uint64_t size = 0;
  switch (field->type) {
    case Type::kVarint:
      return NextVarint(&field->value);
    case Type::kFixed64:
      size = sizeof(uint64_t);
      break;
    case Type::kFixed32:
      size = sizeof(uint32_t);
      break;
    case Type::kBytes:
      FB_RETURN_IF_ERROR(NextVarint(&size));
      break;
    default:
      return Damaged(start, "a field of a known kind", fmt::format("kind {}", type));
  }
  const size_t left = message_.size() - at_;
  if (size > left) return Truncated(place(), "a field", size, left);
  field->bytes = message_.subspan(at_, size);
  if (field->type == Type::kFixed64) field->value = Load<uint64_t>(field->bytes);
  if (field->type == Type::kFixed32) field->value = Load<uint32_t>(field->bytes);
  at_ += size;
  return {};
}

}  // namespace forebay::format
