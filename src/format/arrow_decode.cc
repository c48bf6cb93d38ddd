// DecodeArrow: buffers of a column, unpacked and checked, to its values.
#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/arrow.h"
#include "format/little_endian.h"
#include "format/parquet.h"

namespace forebay::format {
namespace {

using Kind = ArrowColumn::Kind;

// Of each bit from number `first` on a byte, 0 or 1.
void ExpandBits(ByteView bits, uint64_t first, uint64_t count, uint8_t* out) {
  const auto at = [&](uint64_t i) { return static_cast<uint8_t>(bits[i / 8]) >> (i % 8) & 1U; };
  uint64_t i = 0;
  for (; i < count && (first + i) % 8 != 0; ++i) out[i] = static_cast<uint8_t>(at(first + i));
  for (; i + 8 <= count; i += 8) {
    // Bit k of the byte alone in byte k; what is not 0 carries into the byte's top bit.
    constexpr uint64_t kEach = 0x0101010101010101;
    constexpr uint64_t kDiagonal = 0x8040201008040201;
    constexpr uint64_t kBelowTop = 0x7f7f7f7f7f7f7f7f;
    const uint64_t spread = static_cast<uint64_t>(bits[(first + i) / 8]) * kEach & kDiagonal;
    const uint64_t ones = (spread + kBelowTop) >> 7U & kEach;
    std::memcpy(out + i, &ones, sizeof ones);
  }
  for (; i < count; ++i) out[i] = static_cast<uint8_t>(at(first + i));
}

uint64_t BytesOfBits(uint64_t bits) { return bits / 8 + (bits % 8 == 0 ? 0 : 1); }

class Decoding {
 public:
  // `reads`: what `bytes` are, in the shard.
  Decoding(const ArrowChunk& chunk, const std::vector<ByteRange>& reads, ByteView bytes,
           const Place& place, TableValues& out)
      : chunk_(chunk), rows_(chunk.rows), reads_(reads), bytes_(bytes), place_(place), out_(out) {}

  Status Run() {
    out_ = {};
    out_.rows = rows_;
    FB_RETURN_IF_ERROR(SetValid());
    switch (chunk_.column.kind) {
      case Kind::kValues:
      case Kind::kArrays:
        return TakeFixed();
      case Kind::kBytes:
        return TakeBytes();
      case Kind::kViews:
        return TakeViews();
      case Kind::kList:
        return TakeLists();
      case Kind::kIndices:
        return TakeIndexed();
    }
    return Status(Code::kInternal, "an Arrow column of no kind");
  }

 private:
  // A buffer as it lies there.
  struct Stored {
    ByteView bytes;     // packed or not
    uint64_t size = 0;  // unpacked
    bool packed = false;
  };

  size_t Own(size_t i) const { return chunk_.column.parents + i; }
  Place PlaceOf(size_t i) const { return {place_.shard, chunk_.buffers[i].offset}; }
  Status Odd(size_t i, std::string_view expected, std::string_view found) const {
    return Damaged(PlaceOf(i), expected, found);
  }

  Result<Stored> Look(size_t i) const {
    const ByteRange& buffer = chunk_.buffers[i];
    if (buffer.empty()) return Stored{};
    uint64_t at = 0;
    for (const ByteRange& read : reads_) {
      if (read.Contains(buffer)) {
        at += buffer.offset - read.offset;
        break;
      }
      at += read.size();
    }
    const ByteView bytes = bytes_.subspan(at, buffer.size());
    if (chunk_.codec == ArrowCodec::kNone) return Stored{bytes, bytes.size(), false};
    if (bytes.size() < sizeof(int64_t)) {
      return Odd(i, "a buffer with its unpacked size", fmt::format("{} bytes", bytes.size()));
    }
    const auto size = Load<int64_t>(bytes);
    const ByteView rest = bytes.subspan(sizeof size);
    if (size == -1) return Stored{rest, rest.size(), false};
    constexpr ArrowLimits kLimits;
    const uint64_t most = std::min(kLimits.buffer_bytes,
                                   std::max(kLimits.free_ratio_bytes, kLimits.ratio * rest.size()));
    if (size < -1) return Odd(i, "the size of an unpacked buffer", fmt::format("{}", size));
    if (static_cast<uint64_t>(size) > most) {
      return AboveLimit(PlaceOf(i), "the size of an unpacked buffer", static_cast<uint64_t>(size),
                        most);
    }
    return Stored{rest, static_cast<uint64_t>(size), true};
  }

  Status Unpack(size_t i, const Stored& stored, MutableBytes into) const {
    if (into.empty()) return {};
    if (chunk_.codec == ArrowCodec::kLz4Frame) {
      Status status = UnpackLz4Frame(stored.bytes, into);
      if (status.code() != Code::kDataLoss) return status;
      return Odd(i, "a buffer that is compressed by LZ4", status.message());
    }
    const size_t made =
        ZSTD_decompress(into.data(), into.size(), stored.bytes.data(), stored.bytes.size());
    if (ZSTD_isError(made) != 0) return Odd(i, "zstd data", ZSTD_getErrorName(made));
    if (made == into.size()) return {};
    return Odd(i, fmt::format("{} unpacked bytes", into.size()), fmt::format("{}", made));
  }

  Status CheckHolds(size_t i, const Stored& stored, uint64_t bytes) const {
    if (bytes <= stored.size) return {};
    return Odd(i, fmt::format("a buffer of {} bytes or more", bytes),
               fmt::format("{} bytes", stored.size));
  }

  // Its first bytes, in `room` where they had to be unpacked.
  Result<ByteView> View(size_t i, uint64_t bytes, RawBytes& room) const {
    FB_ASSIGN_OR_RETURN(const Stored stored, Look(i));
    FB_RETURN_IF_ERROR(CheckHolds(i, stored, bytes));
    if (!stored.packed) return stored.bytes.first(bytes);
    room.resize(stored.size);
    FB_RETURN_IF_ERROR(Unpack(i, stored, room));
    return ByteView(room).first(bytes);
  }

  // Bytes of it as the column's values.
  Status TakeValues(size_t i, uint64_t first, uint64_t bytes) {
    FB_ASSIGN_OR_RETURN(const Stored stored, Look(i));
    FB_RETURN_IF_ERROR(CheckHolds(i, stored, first + bytes));
    RawBytes& values = out_.values;
    if (stored.packed) {
      values.resize(stored.size);
      FB_RETURN_IF_ERROR(Unpack(i, stored, values));
      if (first > 0 && bytes > 0) std::memmove(values.data(), values.data() + first, bytes);
      values.resize(bytes);
      return {};
    }
    values.resize(bytes);
    if (bytes > 0) std::memcpy(values.data(), stored.bytes.data() + first, bytes);
    return {};
  }

  // Values of the column's bits from number `first` on.
  Status TakeNumbers(size_t i, uint64_t first, uint64_t count) {
    const uint64_t width = chunk_.column.bits / 8;
    if (chunk_.column.bits != 1) return TakeValues(i, first * width, count * width);
    RawBytes room;
    FB_ASSIGN_OR_RETURN(const ByteView bits, View(i, BytesOfBits(first + count), room));
    out_.values.resize(count);
    ExpandBits(bits, first, count, reinterpret_cast<uint8_t*>(out_.values.data()));
    return {};
  }

  // A row is null where it or something around it is.
  Status SetValid() {
    RawBytes room;
    std::vector<uint8_t> valid;
    for (size_t i = 0; i <= chunk_.column.parents; ++i) {
      if (chunk_.buffers[i].empty()) continue;
      FB_ASSIGN_OR_RETURN(const ByteView bits, View(i, BytesOfBits(rows_), room));
      valid.resize(rows_);
      ExpandBits(bits, 0, rows_, valid.data());
      if (out_.valid.empty()) {
        std::swap(out_.valid, valid);
        continue;
      }
      for (uint64_t row = 0; row < rows_; ++row) out_.valid[row] &= valid[row];
    }
    if (std::ranges::find(out_.valid, 0) == out_.valid.end()) out_.valid = {};
    return {};
  }

  bool IsNull(uint64_t row) const { return !out_.valid.empty() && out_.valid[row] == 0; }

  Status TakeFixed() {
    const ArrowColumn& column = chunk_.column;
    const bool arrays = column.kind == Kind::kArrays;
    FB_RETURN_IF_ERROR(TakeNumbers(Own(arrays ? 2 : 1), 0, rows_ * column.each));
    if (arrays) {
      const auto end = [&](uint64_t row) { return (row + 1) * column.each; };
      FB_RETURN_IF_ERROR(CheckElements(Own(1), 0, rows_ * column.each, end));
    }
    const uint64_t width = column.value_bytes();
    for (uint64_t row = 0; row < out_.valid.size(); ++row) {
      if (IsNull(row)) std::memset(out_.values.data() + row * width, 0, width);
    }
    return {};
  }

  // No element of a row that is none itself is null. `end_of(row)`: of its elements, from `first`.
  template <class EndOf>
  Status CheckElements(size_t i, uint64_t first, uint64_t count, const EndOf& end_of) const {
    if (chunk_.buffers[i].empty()) return {};
    RawBytes room;
    FB_ASSIGN_OR_RETURN(const ByteView bits, View(i, BytesOfBits(first + count), room));
    std::vector<uint8_t> valid(count);
    ExpandBits(bits, first, count, valid.data());
    uint64_t at = 0;
    for (uint64_t row = 0; row < rows_; ++row) {
      const uint64_t end = end_of(row);
      if (!IsNull(row) &&
          std::find(valid.data() + at, valid.data() + end, 0) != valid.data() + end) {
        return Odd(i, "values in a list", fmt::format("a null in the list of row {}", row));
      }
      at = end;
    }
    return {};
  }

  template <class T>
  Status TakeOffsets(size_t i, uint64_t* first) {
    RawBytes room;
    FB_ASSIGN_OR_RETURN(const ByteView bytes, View(i, (rows_ + 1) * sizeof(T), room));
    out_.offsets.resize(rows_ + 1);
    const T begin = Load<T>(bytes);
    T before = begin;
    bool grow = begin >= 0;
    for (uint64_t row = 0; row <= rows_; ++row) {
      const T offset = Load<T>(bytes, row * sizeof(T));
      grow = grow && offset >= before;
      out_.offsets[row] = static_cast<uint64_t>(offset) - static_cast<uint64_t>(begin);
      before = offset;
    }
    *first = static_cast<uint64_t>(begin);
    return grow ? Status() : Odd(i, "offsets that grow", "one that is less than the one before");
  }

  // `first`: where the first row's begin, in the buffer of bytes or elements.
  Status TakeOffsets(uint64_t* first) {
    FB_RETURN_IF_ERROR(chunk_.column.wide ? TakeOffsets<int64_t>(Own(1), first)
                                          : TakeOffsets<int32_t>(Own(1), first));
    if (*first < chunk_.skipped) {
      return Odd(Own(1), fmt::format("offsets from {} on", chunk_.skipped),
                 fmt::format("{}", *first));
    }
    *first -= chunk_.skipped;
    return {};
  }

  Status TakeBytes() {
    uint64_t first = 0;
    FB_RETURN_IF_ERROR(TakeOffsets(&first));
    FB_RETURN_IF_ERROR(TakeValues(Own(2), first, out_.offsets[rows_]));
    DropNulls();
    return {};
  }

  Status TakeLists() {
    uint64_t first = 0;
    FB_RETURN_IF_ERROR(TakeOffsets(&first));
    const uint64_t count = out_.offsets[rows_];
    if (first + count > chunk_.entries) {
      return Odd(Own(1), fmt::format("offsets up to {}", chunk_.entries),
                 fmt::format("{}", first + count));
    }
    FB_RETURN_IF_ERROR(TakeNumbers(Own(3), first, count));
    const auto end = [&](uint64_t row) { return out_.offsets[row + 1]; };
    FB_RETURN_IF_ERROR(CheckElements(Own(2), first, count, end));
    for (uint64_t& offset : out_.offsets) offset *= chunk_.column.value_bytes();
    DropNulls();
    return {};
  }

  // What lies in the place of a null is nobody's.
  void DropNulls() {
    uint64_t to = 0;
    uint64_t from = 0;
    for (uint64_t row = 0; row < out_.valid.size(); ++row) {
      const uint64_t end = out_.offsets[row + 1];
      if (!IsNull(row)) {
        if (to != from && end > from) {
          std::memmove(out_.values.data() + to, out_.values.data() + from, end - from);
        }
        to += end - from;
      }
      out_.offsets[row + 1] = to;
      from = end;
    }
    if (!out_.valid.empty()) out_.values.resize(to);
  }

  // Where a view's bytes lie: in it, if there are few.
  Result<ByteView> ViewedBytes(ByteView view, const std::vector<ByteView>& buffers) const {
    constexpr size_t kHere = 12;
    const auto size = Load<int32_t>(view);
    const auto bytes = static_cast<uint64_t>(size);
    if (size >= 0 && bytes <= kHere) return view.subspan(sizeof size, bytes);
    const auto buffer = Load<int32_t>(view, 8);
    const auto offset = Load<int32_t>(view, 12);
    if (size >= 0 && buffer >= 0 && offset >= 0 && static_cast<size_t>(buffer) < buffers.size()) {
      const ByteView in = buffers[static_cast<size_t>(buffer)];
      if (RangeWithin(static_cast<uint64_t>(offset), bytes, in.size())) {
        return in.subspan(static_cast<uint64_t>(offset), bytes);
      }
    }
    return Odd(Own(1), "views of bytes that are there",
               fmt::format("{} bytes at {} of buffer {}", size, offset, buffer));
  }

  Status TakeViews() {
    constexpr uint64_t kView = 16;
    RawBytes room;
    FB_ASSIGN_OR_RETURN(const ByteView views, View(Own(1), rows_ * kView, room));
    std::vector<RawBytes> rooms(chunk_.buffers.size() - Own(2));
    std::vector<ByteView> buffers;
    uint64_t unpacked = 0;
    for (size_t i = 0; i < rooms.size(); ++i) {
      FB_ASSIGN_OR_RETURN(const Stored stored, Look(Own(2 + i)));
      unpacked += stored.size;
      if (unpacked > most()) return TooMany(unpacked);
      FB_ASSIGN_OR_RETURN(const ByteView bytes, View(Own(2 + i), stored.size, rooms[i]));
      buffers.push_back(bytes);
    }
    out_.offsets.resize(rows_ + 1);
    uint64_t all = 0;
    for (uint64_t row = 0; row < rows_; ++row) {
      const auto size = Load<int32_t>(views, row * kView);
      all += size > 0 && !IsNull(row) ? static_cast<uint64_t>(size) : 0;
    }
    out_.values.reserve(std::min(all, most()));
    for (uint64_t row = 0; row < rows_; ++row) {
      out_.offsets[row] = out_.values.size();
      if (IsNull(row)) continue;
      FB_ASSIGN_OR_RETURN(const ByteView value,
                          ViewedBytes(views.subspan(row * kView, kView), buffers));
      FB_RETURN_IF_ERROR(Append(value));
    }
    out_.offsets[rows_] = out_.values.size();
    return {};
  }

  Result<uint64_t> IndexAt(ByteView indices, uint64_t row, uint64_t count) const {
    const uint64_t width = chunk_.column.bits / 8;
    uint64_t index = 0;
    std::memcpy(&index, indices.data() + row * width, width);
    const bool negative = chunk_.column.wide && (index >> (chunk_.column.bits - 1) & 1U) != 0;
    if (index < count && !negative) return index;
    return Odd(Own(1), fmt::format("indices of {} values", count), fmt::format("{}", index));
  }

  void MarkNull(uint64_t row) {
    if (out_.valid.empty()) out_.valid.assign(rows_, 1);
    out_.valid[row] = 0;
  }

  Status TakeIndexed() {
    const ArrowChunk& dictionary = chunk_.dictionary[0];
    TableValues values;
    if (dictionary.rows > 0) {
      FB_RETURN_IF_ERROR(Decoding(dictionary, reads_, bytes_, place_, values).Run());
    }
    RawBytes room;
    FB_ASSIGN_OR_RETURN(const ByteView indices,
                        View(Own(1), rows_ * (chunk_.column.bits / 8), room));
    const uint64_t width = chunk_.column.indexed_bytes;
    if (width > 0) out_.values.resize(rows_ * width);
    if (width == 0) {
      out_.offsets.resize(rows_ + 1);
      FB_RETURN_IF_ERROR(ReserveIndexed(indices, dictionary.rows, values));
    }
    for (uint64_t row = 0; row < rows_; ++row) {
      ByteView value;
      if (!IsNull(row)) {
        FB_ASSIGN_OR_RETURN(const uint64_t i, IndexAt(indices, row, dictionary.rows));
        if (!values.valid.empty() && values.valid[i] == 0) MarkNull(row);
        const uint64_t first = width > 0 ? i * width : values.offsets[i];
        const uint64_t end = width > 0 ? first + width : values.offsets[i + 1];
        value = ByteView(values.values).subspan(first, end - first);
      }
      if (width == 0) {
        FB_RETURN_IF_ERROR(Append(value));
        out_.offsets[row + 1] = out_.values.size();
      } else if (value.empty()) {
        std::memset(out_.values.data() + row * width, 0, width);
      } else {
        std::memcpy(out_.values.data() + row * width, value.data(), width);
      }
    }
    return {};
  }

  // Room for all values, which differ in size.
  Status ReserveIndexed(ByteView indices, uint64_t count, const TableValues& values) {
    uint64_t all = 0;
    for (uint64_t row = 0; row < rows_ && all <= most(); ++row) {
      if (IsNull(row)) continue;
      FB_ASSIGN_OR_RETURN(const uint64_t i, IndexAt(indices, row, count));
      all += values.offsets[i + 1] - values.offsets[i];
    }
    if (all > most()) return TooMany(all);
    out_.values.reserve(all);
    return {};
  }

  Status Append(ByteView value) {
    const uint64_t at = out_.values.size();
    if (value.size() > most() - at) return TooMany(at + value.size());
    out_.values.resize(at + value.size());
    if (!value.empty()) std::memcpy(out_.values.data() + at, value.data(), value.size());
    return {};
  }

  // Views and indices may show the same bytes as often as they like.
  uint64_t most() const {
    return std::max(ArrowLimits{}.buffer_bytes, ArrowLimits{}.ratio * bytes_.size());
  }
  Status TooMany(uint64_t bytes) const {
    return AboveLimit(PlaceOf(Own(1)), "the size of a column's bytes", bytes, most());
  }

  const ArrowChunk& chunk_;
  const uint64_t rows_;
  const std::vector<ByteRange>& reads_;
  const ByteView bytes_;
  const Place place_;
  TableValues& out_;
};

}  // namespace

Status DecodeArrow(const ArrowChunk& chunk, ByteView bytes, const Place& place, TableValues* out) {
  const std::vector<ByteRange> reads = ReadsOf(chunk);
  uint64_t expected = 0;
  for (const ByteRange& range : reads) expected += range.size();
  if (bytes.size() != expected) {
    return Status(Code::kInternal, "an Arrow column of another number of bytes");
  }
  return Decoding(chunk, reads, bytes, place, *out).Run();
}

Status ArrowIsReadable(const ArrowChunk& chunk) {
  const bool lz4 = chunk.codec == ArrowCodec::kLz4Frame ||
                   std::ranges::any_of(chunk.dictionary, [](const ArrowChunk& dictionary) {
                     return dictionary.codec == ArrowCodec::kLz4Frame;
                   });
  return lz4 ? ParquetIsReadable() : Status();
}

}  // namespace forebay::format
