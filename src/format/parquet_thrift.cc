#include "format/parquet_thrift.h"

#include <fmt/core.h>

#include "base/crc32.h"

namespace forebay::format {
namespace {

enum class Wire : uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

// After the first failure everything reads as 0 and ok() is false.
class Compact {
 public:
  Compact(ByteView bytes, const ParquetLimits& limits) : bytes_(bytes), limits_(limits) {}

  bool ok() const { return ok_; }
  uint64_t at() const { return at_; }

  struct Field {
    Wire type = Wire::kStop;
    int64_t id = 0;
  };
  // The next field of a struct, `last` being the one before; kStop: there is none.
  Field Next(int64_t last) {
    const uint8_t head = Byte();
    const auto type = static_cast<Wire>(head & 0xf);
    if (!ok_ || type == Wire::kStop) return {};
    if (type > Wire::kStruct) return Fail();
    const int64_t delta = head >> 4;
    const int64_t id = delta != 0 ? last + delta : Int();
    // They are of 16 bits, which keeps the sum of the next one within its type.
    if (id < INT16_MIN || id > INT16_MAX) return Fail();
    return {type, id};
  }
  int64_t Int() {
    const uint64_t raw = Varint();
    return static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
  }
  struct List {
    Wire type = Wire::kStop;
    uint64_t size = 0;
  };
  List OpenList() {
    const uint8_t head = Byte();
    List list{static_cast<Wire>(head & 0xf), static_cast<uint64_t>(head >> 4)};
    if (list.size == 0xf) list.size = Varint();
    // Every element takes a byte at least.
    if (list.size > limits_.list_elements || list.size > bytes_.size() - at_) ok_ = false;
    return ok_ ? list : List{};
  }
  void Skip(Wire type, int depth, bool in_list = false) {
    if (!ok_ || depth > limits_.depth) {
      ok_ = false;
      return;
    }
    switch (type) {
      case Wire::kTrue:
      case Wire::kFalse:
        if (in_list) (void)Byte();
        return;
      case Wire::kByte:
        (void)Byte();
        return;
      case Wire::kI16:
      case Wire::kI32:
      case Wire::kI64:
        (void)Varint();
        return;
      case Wire::kDouble:
        Pass(sizeof(double));
        return;
      case Wire::kBinary:
        SkipBinary();
        return;
      case Wire::kList:
      case Wire::kSet:
        SkipList(depth);
        return;
      case Wire::kMap:
        SkipMap(depth);
        return;
      case Wire::kStruct:
        SkipStruct(depth);
        return;
      case Wire::kStop:
        break;
    }
    ok_ = false;
  }

 private:
  Field Fail() {
    ok_ = false;
    return {};
  }
  uint8_t Byte() {
    if (!ok_ || at_ == bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  void Pass(uint64_t bytes) {
    if (!ok_ || bytes > bytes_.size() - at_) {
      ok_ = false;
    } else {
      at_ += bytes;
    }
  }
  void SkipBinary() {
    const uint64_t size = Varint();
    if (size > limits_.string_bytes) ok_ = false;
    Pass(size);
  }
  void SkipList(int depth) {
    const List list = OpenList();
    for (uint64_t i = 0; i < list.size && ok_; ++i) Skip(list.type, depth + 1, true);
  }
  void SkipMap(int depth) {
    const uint64_t size = Varint();
    if (size > limits_.list_elements || size > bytes_.size() - at_) ok_ = false;
    if (!ok_ || size == 0) return;
    const uint8_t types = Byte();
    for (uint64_t i = 0; i < size && ok_; ++i) {
      Skip(static_cast<Wire>(types >> 4), depth + 1, true);
      Skip(static_cast<Wire>(types & 0xf), depth + 1, true);
    }
  }
  void SkipStruct(int depth) {
    int64_t last = 0;
    while (ok_) {
      const Field field = Next(last);
      if (field.type == Wire::kStop) return;
      Skip(field.type, depth + 1);
      last = field.id;
    }
  }

  ByteView bytes_;
  const ParquetLimits& limits_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

// The number in field `wanted` of the struct that comes next; -1: it is not there.
int64_t NumberIn(Compact& in, int64_t wanted) {
  int64_t found = -1;
  int64_t last = 0;
  while (in.ok()) {
    const Compact::Field field = in.Next(last);
    if (field.type == Wire::kStop) break;
    if (field.id == wanted && field.type == Wire::kI32) {
      found = in.Int();
    } else {
      in.Skip(field.type, 1);
    }
    last = field.id;
  }
  return found;
}

struct RawHead {
  int64_t type = -1, uncompressed = -1, compressed = -1, entries = -1;
  std::optional<uint32_t> crc;
};

RawHead ReadHead(Compact& in) {
  RawHead head;
  int64_t last = 0;
  while (in.ok()) {
    const Compact::Field field = in.Next(last);
    if (field.type == Wire::kStop) break;
    last = field.id;
    const bool number = field.type == Wire::kI32;
    const bool entries = field.id == 5 || field.id == 7 || field.id == 8;
    if (number && field.id == 1) {
      head.type = in.Int();
    } else if (number && field.id == 2) {
      head.uncompressed = in.Int();
    } else if (number && field.id == 3) {
      head.compressed = in.Int();
    } else if (number && field.id == 4) {
      head.crc = static_cast<uint32_t>(in.Int());
    } else if (field.type == Wire::kStruct && entries) {
      head.entries = NumberIn(in, 1);
    } else {
      in.Skip(field.type, 0);
    }
  }
  return head;
}

Result<ParquetPageHead> PageAt(ByteView bytes, uint64_t at, const ParquetLimits& limits,
                               const Place& place) {
  const ByteView rest = bytes.subspan(at);
  Compact in(rest.first(std::min<uint64_t>(rest.size(), limits.header_bytes)), limits);
  const RawHead raw = ReadHead(in);
  if (!in.ok() || raw.type < 0 || raw.type > 3 || raw.uncompressed < 0 || raw.compressed < 0 ||
      (raw.entries < 0 && raw.type != 1)) {
    return Damaged(place, "the header of a Parquet page", "something else");
  }
  ParquetPageHead page{.type = static_cast<ParquetPageHead::Type>(raw.type),
                       .offset = at,
                       .head_bytes = in.at(),
                       .bytes = static_cast<uint64_t>(raw.compressed),
                       .uncompressed = static_cast<uint64_t>(raw.uncompressed),
                       .entries = static_cast<uint64_t>(std::max<int64_t>(raw.entries, 0)),
                       .crc = raw.crc};
  if (page.bytes > rest.size() - in.at()) {
    return Truncated(place + in.at(), "a Parquet page", page.bytes, rest.size() - in.at());
  }
  if (page.uncompressed > limits.page_bytes) {
    return AboveLimit(place, "a Parquet page's size", page.uncompressed, limits.page_bytes);
  }
  if (page.uncompressed > limits.free_ratio_bytes &&
      page.uncompressed / limits.ratio > page.bytes) {
    return AboveLimit(place, "a Parquet page's size", page.uncompressed, page.bytes * limits.ratio);
  }
  if (page.crc && Crc32(rest.subspan(in.at(), page.bytes)) != *page.crc) {
    return Damaged(place, fmt::format("a Parquet page with CRC-32 {:08x}", *page.crc),
                   fmt::format("{:08x}", Crc32(rest.subspan(in.at(), page.bytes))));
  }
  return page;
}

}  // namespace

Result<std::vector<ParquetPageHead>> WalkParquetPages(ByteView bytes,
                                                      std::optional<uint64_t> entries,
                                                      const ParquetLimits& limits,
                                                      const Place& place) {
  constexpr uint64_t kPadding = 100;  // what old writers' dictionaries may be longer than they say
  std::vector<ParquetPageHead> pages;
  uint64_t found = 0;
  uint64_t at = 0;
  while (entries ? found < *entries : at < bytes.size()) {
    if (at == bytes.size()) {
      return Damaged(place + at,
                     fmt::format("{} more values of a Parquet column", *entries - found),
                     "the end");
    }
    FB_ASSIGN_OR_RETURN(const ParquetPageHead page, PageAt(bytes, at, limits, place + at));
    if (page.type == ParquetPageHead::Type::kDictionary && !pages.empty()) {
      return Damaged(place + at, "a page of data", "a second dictionary");
    }
    if (entries && page.is_data() && page.entries > *entries - found) {
      return AboveLimit(place + at, "a Parquet page's number of values", page.entries,
                        *entries - found);
    }
    found += page.is_data() ? page.entries : 0;
    at += page.head_bytes + page.bytes;
    pages.push_back(page);
  }
  if (bytes.size() - at > kPadding) {
    return Damaged(place + at, "the end of a Parquet column", "more bytes of it");
  }
  return pages;
}

Status CheckParquetFooter(ByteView footer, const ParquetLimits& limits, const Place& place) {
  constexpr int64_t kSchema = 2;
  constexpr int64_t kChildren = 5;
  Compact in(footer, limits);
  int64_t last = 0;
  while (in.ok()) {
    const Compact::Field field = in.Next(last);
    if (field.type == Wire::kStop) break;
    last = field.id;
    if (field.id != kSchema || field.type != Wire::kList) {
      in.Skip(field.type, 0);
      continue;
    }
    const Compact::List list = in.OpenList();
    if (list.type != Wire::kStruct) return Damaged(place, "a schema", "something else");
    std::vector<int64_t> open;  // children to come, of each level
    for (uint64_t i = 0; i < list.size && in.ok(); ++i) {
      const int64_t children = NumberIn(in, kChildren);
      while (!open.empty() && open.back() == 0) open.pop_back();
      if (!open.empty()) --open.back();
      if (children > 0) open.push_back(children);
      if (open.size() > static_cast<size_t>(limits.depth)) {
        return AboveLimit(place, "the depth of a schema", open.size(),
                          static_cast<uint64_t>(limits.depth));
      }
    }
  }
  return in.ok() ? Status() : Damaged(place, "the footer of a Parquet file", "something else");
}

}  // namespace forebay::format
