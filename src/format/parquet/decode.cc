#include "format/parquet/decode.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <fmt/core.h>
#include <parquet/column_reader.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/ascii.h"
#include "format/parquet/codec.h"
#include "format/parquet_thrift.h"

namespace forebay::format::parquet {
namespace {

namespace pq = ::parquet;
using Stored = ParquetColumn::Stored;

constexpr uint64_t kBatch = 64 << 10;  // levels at a time

Status Odd(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("a Parquet column: {}", what));
}

// Values of which each is as large as the others. `out` has room.
template <class T>
void Put(const T* from, uint64_t n, uint32_t width, std::byte* out) {
  if constexpr (std::is_same_v<T, pq::FixedLenByteArray>) {
    for (uint64_t i = 0; i < n; ++i) std::memcpy(out + i * width, from[i].ptr, width);
  } else if constexpr (std::is_same_v<T, pq::Int96>) {
    for (uint64_t i = 0; i < n; ++i) {
      const int64_t nanoseconds = pq::Int96GetNanoSeconds(from[i]);
      std::memcpy(out + i * width, &nanoseconds, sizeof nanoseconds);
    }
  } else if constexpr (!std::is_same_v<T, pq::ByteArray>) {
    // Little-endian: the low bytes of a number come first.
    for (uint64_t i = 0; i < n; ++i) std::memcpy(out + i * width, from + i, width);
  }
}

template <class T>
constexpr bool kIsPlain = std::is_arithmetic_v<T>;

// Reads one column's values as they come.
template <class Type>
class Decoding {
 public:
  using T = typename Type::c_type;

  // `most`: bytes that values may take.
  Decoding(const ParquetColumn& column, uint64_t most, pq::ColumnReader& reader, TableValues& out)
      : column_(column),
        most_(most),
        reader_(static_cast<pq::TypedColumnReader<Type>&>(reader)),
        out_(out) {}

  Status Run(uint64_t rows, uint64_t entries) {
    out_.rows = rows;
    definitions_.resize(column_.max_definition > 0 ? std::min(entries, kBatch) : 0);
    repetitions_.resize(column_.max_repetition > 0 ? std::min(entries, kBatch) : 0);
    const bool sized = column_.value_bytes > 0;
    if (sized) out_.values.resize(entries * column_.value_bytes);
    if (!sized || column_.max_repetition > 0) out_.offsets.reserve(rows + 1);
    uint64_t left = entries;
    while (left > 0) {
      FB_ASSIGN_OR_RETURN(const uint64_t levels, Batch(std::min(left, kBatch)));
      if (levels == 0) return Odd(fmt::format("{} values are missing", left));
      left -= levels;
    }
    if (sized) out_.values.resize(filled_ * column_.value_bytes);
    return Finish(rows);
  }

 private:
  Result<uint64_t> Batch(uint64_t most) {
    // Where values come out as they are stored, they are decoded into their place.
    const bool direct = kIsPlain<T> && column_.value_bytes == sizeof(T);
    T* into = nullptr;
    if (direct) {
      into = reinterpret_cast<T*>(out_.values.data() + filled_ * sizeof(T));
    } else {
      if (scratch_.size() < most) scratch_.resize(most);
      into = reinterpret_cast<T*>(scratch_.data());
    }
    int64_t values = 0;
    const int64_t read = reader_.ReadBatch(
        static_cast<int64_t>(most), definitions_.empty() ? nullptr : definitions_.data(),
        repetitions_.empty() ? nullptr : repetitions_.data(), into, &values);
    const auto levels = static_cast<uint64_t>(std::max<int64_t>(read, 0));
    const auto n = static_cast<uint64_t>(std::max<int64_t>(values, 0));
    if (levels > most || n > levels || (column_.max_definition == 0 && n != levels)) {
      return Odd("its levels are damaged");
    }
    if (column_.max_repetition > 0) {
      FB_RETURN_IF_ERROR(TakeLists(into, levels, n, direct));
    } else if (column_.value_bytes == 0) {
      FB_RETURN_IF_ERROR(TakeBytes(into, levels, n));
    } else {
      FB_RETURN_IF_ERROR(TakeValues(into, levels, n, direct));
    }
    return levels;
  }

  bool IsValue(uint64_t i) const {
    return definitions_.empty() || definitions_[i] == column_.max_definition;
  }
  void MarkNull() {
    if (out_.valid.empty()) out_.valid.assign(out_.rows, 1);
    if (row_ < out_.rows) out_.valid[row_] = 0;
  }

  // One for each row, nulls as zeros.
  Status TakeValues(const T* from, uint64_t levels, uint64_t n, bool direct) {
    const uint32_t width = column_.value_bytes;
    std::byte* out = out_.values.data() + filled_ * width;
    if (!direct) Put(from, n, width, out);
    if (n < levels) {  // from the last one on, as they move towards the end
      uint64_t value = n;
      for (uint64_t i = levels; i-- > 0;) {
        if (!IsValue(i)) {
          std::memset(out + i * width, 0, width);
        } else if (value == 0) {
          return Odd("its levels are damaged");
        } else if (--value != i) {
          std::memmove(out + i * width, out + value * width, width);
        }
      }
      if (value != 0) return Odd("its levels are damaged");
      for (uint64_t i = 0; i < levels; ++i, ++row_) {
        if (!IsValue(i)) MarkNull();
      }
      row_ -= levels;
    }
    row_ += levels;
    filled_ += levels;
    return {};
  }

  Status TakeBytes(const T* from, uint64_t levels, uint64_t n) {
    if constexpr (std::is_same_v<T, pq::ByteArray>) {
      uint64_t value = 0;
      for (uint64_t i = 0; i < levels; ++i, ++row_) {
        out_.offsets.push_back(out_.values.size());
        if (!IsValue(i)) {
          MarkNull();
          continue;
        }
        if (value == n) return Odd("its levels are damaged");
        const auto* bytes = reinterpret_cast<const std::byte*>(from[value].ptr);
        if (from[value].len > most_ - std::min<uint64_t>(out_.values.size(), most_)) {
          return Odd(fmt::format("its values are above the limit of {} bytes", most_));
        }
        const size_t at = out_.values.size();
        out_.values.resize(at + from[value].len);
        if (from[value].len > 0) std::memcpy(out_.values.data() + at, bytes, from[value].len);
        ++value;
      }
      return value == n ? Status() : Odd("its levels are damaged");
    } else {
      return Odd("it has another type");
    }
  }

  Status TakeLists(const T* from, uint64_t levels, uint64_t n, bool direct) {
    const uint32_t width = column_.value_bytes;
    if (!direct) Put(from, n, width, out_.values.data() + filled_ * width);
    uint64_t value = 0;
    for (uint64_t i = 0; i < levels; ++i) {
      if (repetitions_[i] == 0) {
        if (started_) ++row_;
        started_ = true;
        out_.offsets.push_back((filled_ + value) * width);
        if (definitions_.empty() || definitions_[i] + 1 < column_.list_definition) MarkNull();
      } else if (!started_) {
        return Odd("it begins inside of a list");
      }
      if (!definitions_.empty() && definitions_[i] < column_.list_definition) continue;
      if (!IsValue(i)) return Odd(fmt::format("a null in the list of row {}", row_));
      if (value == n) return Odd("its levels are damaged");
      ++value;
    }
    if (value != n) return Odd("its levels are damaged");
    filled_ += n;
    return {};
  }

  Status Finish(uint64_t rows) {
    const bool ragged = column_.value_bytes == 0 || column_.max_repetition > 0;
    const uint64_t found = ragged ? out_.offsets.size() : row_;
    if (found != rows) return Odd(fmt::format("{} rows, not {}", found, rows));
    if (ragged) out_.offsets.push_back(out_.values.size());
    return {};
  }

  const ParquetColumn& column_;
  const uint64_t most_;
  pq::TypedColumnReader<Type>& reader_;
  TableValues& out_;
  std::vector<int16_t> definitions_, repetitions_;
  struct alignas(alignof(T)) Raw {
    std::byte bytes[sizeof(T)];
  };
  std::vector<Raw> scratch_;
  uint64_t filled_ = 0;  // values
  uint64_t row_ = 0;
  bool started_ = false;  // a list
};

// What is decoded.
struct Task {
  const ParquetColumn& column;
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t most = 0;  // bytes
};

template <class Type>
Status Run(const Task& task, pq::ColumnReader& reader, TableValues* out) {
  return Decoding<Type>(task.column, task.most, reader, *out).Run(task.rows, task.entries);
}

Status DecodePages(const ParquetChunk& chunk, uint64_t rows, uint64_t entries, ByteView bytes,
                   TableValues* out) {
  // Arrow's own allocator (mimalloc) was seen to crash in a thread that was the first to use it.
  arrow::MemoryPool* pool = arrow::system_memory_pool();
  const ParquetColumn& column = chunk.column;
  const auto node = pq::schema::PrimitiveNode::Make(
      "column", pq::Repetition::OPTIONAL, static_cast<pq::Type::type>(column.stored),
      pq::ConvertedType::NONE,
      column.stored == Stored::kFixed ? static_cast<int>(column.fixed_bytes) : -1);
  const pq::ColumnDescriptor descr(node, column.max_definition, column.max_repetition);
  auto stream = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size())));
  auto pages =
      pq::PageReader::Open(std::move(stream), static_cast<int64_t>(entries), CodecOf(chunk.codec),
                           pq::ReaderProperties(pool), descr, chunk.always_compressed);
  const auto reader = pq::ColumnReader::Make(&descr, std::move(pages), pool);
  const ParquetLimits limits;
  const Task task{column, rows, entries,
                  std::max(limits.values_bytes, limits.ratio * bytes.size())};
  switch (column.stored) {
    case Stored::kBool:
      return Run<pq::BooleanType>(task, *reader, out);
    case Stored::kInt32:
      return Run<pq::Int32Type>(task, *reader, out);
    case Stored::kInt64:
      return Run<pq::Int64Type>(task, *reader, out);
    case Stored::kInt96:
      return Run<pq::Int96Type>(task, *reader, out);
    case Stored::kFloat:
      return Run<pq::FloatType>(task, *reader, out);
    case Stored::kDouble:
      return Run<pq::DoubleType>(task, *reader, out);
    case Stored::kBytes:
      return Run<pq::ByteArrayType>(task, *reader, out);
    case Stored::kFixed:
      return Run<pq::FLBAType>(task, *reader, out);
  }
  return Odd("it has no type");
}

}  // namespace

Status Decode(const ParquetChunk& chunk, uint64_t rows, uint64_t entries, ByteView bytes,
              TableValues* out) {
  try {
    return DecodePages(chunk, rows, entries, bytes, out);
  } catch (const std::exception& error) {
    constexpr size_t kSaid = 1024;
    return Odd(Printable(error.what(), kSaid));
  }
}

}  // namespace forebay::format::parquet
