#include "format/sagemaker_record.h"

#include <fmt/core.h>

#include <algorithm>

#include "format/little_endian.h"
#include "format/wire.h"

namespace forebay::format {
namespace {

using Kind = SageMakerValue::Kind;
using Type = WireReader::Type;
using Field = WireReader::Field;

uint64_t SizeOf(Kind kind) { return kind == Kind::kFloat64 ? 8 : 4; }

Kind KindOfField(uint32_t number) {
  switch (number) {
    case 2:
      return Kind::kFloat32;
    case 3:
      return Kind::kFloat64;
    case 7:
      return Kind::kInt32;
    case 9:
      return Kind::kBytes;
    default:
      return Kind::kNone;
  }
}

Status WrongKind(const Place& place, std::string_view what) {
  return Damaged(place, what, "a field of another kind");
}

// Empties it but keeps its memory.
void Clear(SageMakerValue* value) {
  value->kind = Kind::kNone;
  value->sparse = false;
  value->values = {};
  value->keys.clear();
  value->shape.clear();
  value->bytes.clear();
  value->content_type = {};
  value->joined.clear();
}

void Append(ByteView bytes, SageMakerValue* value) {
  if (bytes.empty()) return;
  if (value->values.empty()) {
    value->values = bytes;
    return;
  }
  if (value->joined.empty()) value->joined.assign(value->values.begin(), value->values.end());
  value->joined.insert(value->joined.end(), bytes.begin(), bytes.end());
  value->values = value->joined;
}

// Numbers of 32 bits, kept as varints of 64.
void AppendInt32(uint64_t varint, SageMakerValue* value) {
  const auto number = static_cast<int32_t>(static_cast<uint32_t>(varint));
  const auto* bytes = reinterpret_cast<const std::byte*>(&number);
  value->joined.insert(value->joined.end(), bytes, bytes + sizeof number);
  value->values = value->joined;
}

// A list of varints, packed or one by one.
template <class Take>
Status TakeVarints(const Field& field, const Place& place, const Take& take) {
  if (field.type == Type::kVarint) {
    take(field.value);
    return {};
  }
  if (field.type != Type::kBytes) return WrongKind(place, "a list of integers");
  WireReader list(field.bytes, place);
  while (!list.AtEnd()) {
    FB_ASSIGN_OR_RETURN(const uint64_t number, list.Varint());
    take(number);
  }
  return {};
}

Status TakeValues(const Field& field, const Place& place, SageMakerValue* value) {
  if (value->kind == Kind::kInt32) {
    return TakeVarints(field, place, [value](uint64_t number) { AppendInt32(number, value); });
  }
  const Type single = value->kind == Kind::kFloat64 ? Type::kFixed64 : Type::kFixed32;
  if (field.type != single && field.type != Type::kBytes)
    return WrongKind(place, "a list of floats");
  if (field.bytes.size() % SizeOf(value->kind) != 0) {
    return Damaged(place, fmt::format("floats of {} bytes", SizeOf(value->kind)),
                   fmt::format("{} bytes", field.bytes.size()));
  }
  Append(field.bytes, value);
  return {};
}

Status TakeTensor(ByteView message, const Place& place, SageMakerValue* value) {
  WireReader reader(message, place);
  Field field;
  while (!reader.AtEnd()) {
    FB_RETURN_IF_ERROR(reader.Next(&field));
    const Place here = field.bytes.empty() ? reader.place() : reader.PlaceOf(field);
    if (field.number == 1) {
      FB_RETURN_IF_ERROR(TakeValues(field, here, value));
    } else if (field.number == 2 || field.number == 3) {
      auto& list = field.number == 2 ? value->keys : value->shape;
      FB_RETURN_IF_ERROR(TakeVarints(field, here, [&list](uint64_t n) { list.push_back(n); }));
    }
  }
  return {};
}

Status TakeBytes(ByteView message, const Place& place, SageMakerValue* value) {
  WireReader reader(message, place);
  Field field;
  while (!reader.AtEnd()) {
    FB_RETURN_IF_ERROR(reader.Next(&field));
    if (field.number != 1 && field.number != 2) continue;
    if (field.type != Type::kBytes) return WrongKind(reader.place(), "bytes");
    if (field.number == 1) value->bytes.push_back(field.bytes);
    if (field.number == 2) value->content_type = AsText(field.bytes);
  }
  return {};
}

Status CheckSparse(const Place& place, SageMakerValue* value) {
  if (value->kind == Kind::kBytes || value->kind == Kind::kNone) return {};
  value->sparse = !value->keys.empty() || (value->count() == 0 && !value->shape.empty());
  if (!value->sparse) return {};
  if (value->keys.size() != value->count()) {
    return Damaged(place, fmt::format("{} keys of a sparse tensor", value->count()),
                   fmt::format("{}", value->keys.size()));
  }
  if (value->shape.empty()) return Damaged(place, "the shape of a sparse tensor", "none");
  uint64_t size = 1;
  for (const uint64_t dimension : value->shape) {
    const auto product = Total(size, dimension);
    if (!product) return AboveLimit(place, "a tensor's dimension", dimension, UINT64_MAX / size);
    size = *product;
  }
  for (const uint64_t key : value->keys) {
    if (key >= size) {
      return Damaged(place, fmt::format("keys below the tensor's size of {}", size),
                     fmt::format("{}", key));
    }
  }
  return {};
}

// Of a dense one, too, the shape must be that of its values.
Status CheckDense(const Place& place, const SageMakerValue& value) {
  if (value.sparse || value.shape.empty() || value.kind == Kind::kBytes) return {};
  std::optional<uint64_t> size = 1;
  for (const uint64_t dimension : value.shape) size = size ? Total(*size, dimension) : size;
  if (size == value.count()) return {};
  return Damaged(place, "as many values as the tensor's shape has",
                 fmt::format("{}", value.count()));
}

Status TakeValue(ByteView message, const Place& place, SageMakerValue* value) {
  WireReader reader(message, place);
  Field field;
  while (!reader.AtEnd()) {
    FB_RETURN_IF_ERROR(reader.Next(&field));
    const Kind kind = KindOfField(field.number);
    if (kind == Kind::kNone) continue;
    if (field.type != Type::kBytes) return WrongKind(reader.place(), "a tensor");
    const Place here = reader.PlaceOf(field);
    // One of several: the last kind counts, and what comes twice is merged.
    if (value->kind != kind) Clear(value);
    value->kind = kind;
    FB_RETURN_IF_ERROR(kind == Kind::kBytes ? TakeBytes(field.bytes, here, value)
                                            : TakeTensor(field.bytes, here, value));
  }
  FB_RETURN_IF_ERROR(CheckSparse(place, value));
  return CheckDense(place, *value);
}

// An entry of a map goes into `values`, whose first `*used` are those of this record.
Status TakeEntry(ByteView message, const Place& place, std::vector<SageMakerValue>* values,
                 size_t* used) {
  WireReader reader(message, place);
  Field field;
  std::string_view name;
  ByteView value;
  Place value_place = place;
  while (!reader.AtEnd()) {
    FB_RETURN_IF_ERROR(reader.Next(&field));
    if (field.number != 1 && field.number != 2) continue;
    if (field.type != Type::kBytes) return WrongKind(reader.place(), "a name or a value");
    if (field.number == 1) {
      name = AsText(field.bytes);
    } else {
      value = field.bytes;
      value_place = reader.PlaceOf(field);
    }
  }
  const auto end = values->begin() + static_cast<ptrdiff_t>(*used);
  auto entry = std::find_if(values->begin(), end,
                            [name](const SageMakerValue& other) { return other.name == name; });
  if (entry == end) {
    if (*used == values->size()) values->emplace_back();
    entry = values->begin() + static_cast<ptrdiff_t>((*used)++);
  }
  Clear(&*entry);
  entry->name = name;
  return TakeValue(value, value_place, &*entry);
}

}  // namespace

uint64_t SageMakerValue::count() const {
  return kind == Kind::kBytes ? bytes.size() : values.size() / SizeOf(kind);
}

Status OpenSageMakerRecord(ByteView payload, SageMakerRecord* record, const Place& place) {
  if (payload.size() > kMaxSageMakerRecordBytes) {
    return AboveLimit(place, "a record's size", payload.size(), kMaxSageMakerRecordBytes);
  }
  record->uid = record->metadata = record->configuration = {};
  size_t features = 0;
  size_t labels = 0;
  WireReader reader(payload, place);
  Field field;
  while (!reader.AtEnd()) {
    FB_RETURN_IF_ERROR(reader.Next(&field));
    if (field.number > 5) continue;
    if (field.type != Type::kBytes) return WrongKind(reader.place(), "a map or a text");
    const Place here = reader.PlaceOf(field);
    switch (field.number) {
      case 1:
        FB_RETURN_IF_ERROR(TakeEntry(field.bytes, here, &record->features, &features));
        break;
      case 2:
        FB_RETURN_IF_ERROR(TakeEntry(field.bytes, here, &record->labels, &labels));
        break;
      case 3:
        record->uid = AsText(field.bytes);
        break;
      case 4:
        record->metadata = AsText(field.bytes);
        break;
      default:
        record->configuration = AsText(field.bytes);
        break;
    }
  }
  record->features.resize(features);
  record->labels.resize(labels);
  return {};
}

}  // namespace forebay::format
