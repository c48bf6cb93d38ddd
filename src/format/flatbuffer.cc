#include "format/flatbuffer.h"

namespace forebay::format {
namespace {

// What an offset points to, 0 for nothing: offsets are positive, and counted from themselves.
uint64_t Follow(FlatReader& in, uint64_t at) {
  const uint64_t offset = in.Word<uint32_t>(at);
  if (offset == 0 || !in.Has(at + offset, sizeof(uint32_t))) return 0;
  return at + offset;
}

}  // namespace

FlatTable FlatReader::Root() {
  const uint64_t at = Follow(*this, 0);
  return at == 0 ? FlatTable() : FlatTable(this, at);
}

FlatTable FlatVector::Table(uint64_t i) const {
  if (i >= count_) return {};
  const uint64_t at = Follow(*in_, at_ + i * each_);
  return at == 0 ? FlatTable() : FlatTable(in_, at);
}

FlatTable::FlatTable(FlatReader* in, uint64_t at) : at_(at) {
  constexpr uint64_t kHead = 2 * sizeof(uint16_t);  // the two sizes
  // Where the table of fields lies is counted backwards.
  const int64_t fields_at = static_cast<int64_t>(at) - in->Word<int32_t>(at);
  // Of what lies ahead of the bytes this is far behind their end.
  const auto place = static_cast<uint64_t>(fields_at);
  const uint64_t bytes = in->Word<uint16_t>(place);
  size_ = in->Word<uint16_t>(place + sizeof(uint16_t));
  if (!in->ok() || bytes < kHead || !in->Has(place, bytes) || !in->Has(at, size_)) return;
  in_ = in;
  fields_at_ = place + kHead;
  fields_ = (bytes - kHead) / sizeof(uint16_t);
}

uint64_t FlatTable::At(uint32_t field, uint64_t size) const {
  if (in_ == nullptr || field >= fields_) return 0;
  const uint64_t offset = in_->Word<uint16_t>(fields_at_ + field * sizeof(uint16_t));
  if (offset == 0) return 0;
  // Outside of the table is outside of the bytes.
  return in_->Has(offset + size <= size_ ? at_ : UINT64_MAX, size) ? at_ + offset : 0;
}

FlatTable FlatTable::Table(uint32_t field) const {
  const uint64_t at = At(field, sizeof(uint32_t));
  const uint64_t table = at == 0 ? 0 : Follow(*in_, at);
  return table == 0 ? FlatTable() : FlatTable(in_, table);
}

std::string_view FlatTable::Text(uint32_t field) const { return Vector(field, 1).Text(); }

FlatVector FlatTable::Vector(uint32_t field, uint64_t each) const {
  const uint64_t at = At(field, sizeof(uint32_t));
  const uint64_t vector = at == 0 ? 0 : Follow(*in_, at);
  if (vector == 0) return {};
  const uint64_t count = in_->Word<uint32_t>(vector);
  const uint64_t first = vector + sizeof(uint32_t);
  if (!in_->Has(first, count * each)) return {};  // 32 bits times little: does not wrap
  return {in_, first, count, each};
}

}  // namespace forebay::format
