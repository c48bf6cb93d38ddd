// Flatbuffers, read where they lie. Every offset is checked when it is followed; what lies outside
// of the bytes reads as 0 or nothing, and ok() is false from then on. Nothing is allocated.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "format/little_endian.h"

namespace forebay::format {

class FlatTable;

class FlatReader {
 public:
  // The bytes and the reader outlive its tables.
  explicit FlatReader(ByteView bytes) : bytes_(bytes) {}
  FlatReader(const FlatReader&) = delete;
  FlatReader& operator=(const FlatReader&) = delete;

  FlatTable Root();
  bool ok() const { return ok_; }
  ByteView bytes() const { return bytes_; }

  // What tables are read by.
  template <class T>
  T Word(uint64_t at) {
    if (!Has(at, sizeof(T))) return T{};
    return Load<T>(bytes_, at);
  }
  // Whether these bytes are there; else ok() is false.
  bool Has(uint64_t at, uint64_t size) {
    ok_ = ok_ && at <= bytes_.size() && size <= bytes_.size() - at;
    return ok_;
  }

 private:
  ByteView bytes_;
  bool ok_ = true;
};

// Structs of one size, or tables.
class FlatVector {
 public:
  FlatVector() = default;
  FlatVector(FlatReader* in, uint64_t at, uint64_t count, uint64_t each)
      : in_(in), at_(at), count_(count), each_(each) {}
  uint64_t size() const { return count_; }
  FlatTable Table(uint64_t i) const;  // of a vector of tables; none where there are fewer
  // Of a vector of structs: a member of number i < size().
  template <class T>
  T Member(uint64_t i, uint64_t at = 0) const {
    return in_->Word<T>(at_ + i * each_ + at);
  }
  std::string_view Text() const {  // of a vector of bytes
    return in_ == nullptr ? std::string_view() : AsText(in_->bytes().subspan(at_, count_));
  }

 private:
  FlatReader* in_ = nullptr;
  uint64_t at_ = 0;
  uint64_t count_ = 0;
  uint64_t each_ = 0;
};

// Fields go by their number in the schema's order.
class FlatTable {
 public:
  FlatTable() = default;  // has no fields
  FlatTable(FlatReader* in, uint64_t at);

  bool exists() const { return in_ != nullptr; }
  template <class T>
  T Get(uint32_t field, T otherwise = T{}) const {
    const uint64_t at = At(field, sizeof(T));
    return at == 0 ? otherwise : in_->Word<T>(at);
  }
  FlatTable Table(uint32_t field) const;
  std::string_view Text(uint32_t field) const;
  FlatVector Tables(uint32_t field) const { return Vector(field, sizeof(uint32_t)); }
  FlatVector Structs(uint32_t field, uint64_t each) const { return Vector(field, each); }

 private:
  uint64_t At(uint32_t field, uint64_t size) const;  // 0: it is not there
  FlatVector Vector(uint32_t field, uint64_t each) const;

  FlatReader* in_ = nullptr;
  uint64_t at_ = 0;
  uint64_t size_ = 0;
  uint64_t fields_at_ = 0;  // of the table of fields: where each lies
  uint64_t fields_ = 0;
};

}  // namespace forebay::format
