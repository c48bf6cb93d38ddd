#include "format/parquet/writer.h"

#include <arrow/array/data.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/device.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/utf8.h>
#include <fmt/core.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/raw_bytes.h"
#include "format/output_record.h"

namespace forebay::format::parquet {
namespace {

namespace pq = ::parquet;
using Kind = ParquetOutputColumn::Kind;

constexpr uint64_t kGroupBytes = 16ULL << 20;
constexpr uint64_t kGroupRows = 1ULL << 20;
constexpr int64_t kPageBytes = 1 << 20;
// As much as readers take for a page; with what a group has, its offsets fit 32 bits.
constexpr uint64_t kValueBytesMost = 1ULL << 30;
constexpr size_t kSaid = 1024;  // of what Arrow says

Status Failed(const arrow::Status& status) {
  return Status(Code::kInternal, Printable(status.ToString(), kSaid));
}

std::shared_ptr<arrow::DataType> TypeOf(std::string_view dtype) {
  struct Known {
    std::string_view name;
    std::shared_ptr<arrow::DataType> type;
  };
  static const Known kKnown[] = {
      {"bool", arrow::boolean()},    {"int8", arrow::int8()},       {"int16", arrow::int16()},
      {"int32", arrow::int32()},     {"int64", arrow::int64()},     {"uint8", arrow::uint8()},
      {"uint16", arrow::uint16()},   {"uint32", arrow::uint32()},   {"uint64", arrow::uint64()},
      {"float16", arrow::float16()}, {"float32", arrow::float32()}, {"float64", arrow::float64()}};
  const auto* known = std::ranges::find(kKnown, dtype, &Known::name);
  return known == std::end(kKnown) ? nullptr : known->type;
}

// What Arrow makes on first use and all threads share. It is made here, before any of them uses it:
// how Arrow itself sees to that is hidden from a thread sanitizer.
struct Shared {
  std::shared_ptr<arrow::DataType> text = arrow::utf8();
  std::shared_ptr<arrow::DataType> bytes = arrow::binary();
  std::shared_ptr<arrow::MemoryManager> manager = arrow::default_cpu_memory_manager();

  static const Shared& Get() {
    static const Shared shared;
    return shared;
  }

 private:
  Shared() { arrow::util::InitializeUTF8(); }
};

std::shared_ptr<arrow::DataType> TypeOf(const ParquetOutputColumn& column) {
  switch (column.kind) {
    case Kind::kNumber:
      return TypeOf(column.dtype);
    case Kind::kList: {
      auto element = TypeOf(column.dtype);
      if (element == nullptr) return nullptr;
      return arrow::list(arrow::field("element", std::move(element), false));
    }
    case Kind::kText:
      return Shared::Get().text;
    case Kind::kBytes:
      return Shared::Get().bytes;
  }
  return nullptr;
}

// Appends to a vector of our own: Arrow's would have to be copied out.
class ToVector : public arrow::io::OutputStream {
 public:
  explicit ToVector(uint64_t bytes) { bytes_.reserve(bytes); }

  arrow::Status Write(const void* data, int64_t size) override {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return static_cast<int64_t>(bytes_.size()); }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  bool closed_ = false;
};

std::shared_ptr<arrow::Buffer> View(ByteView bytes) {
  return std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()),
                                         static_cast<int64_t>(bytes.size()));
}

// The values of a column that wait for their row group, laid out as Arrow's arrays are.
struct Waiting {
  RawBytes values;
  std::vector<int32_t> ends{0};  // where they differ in size: offsets, in elements
  std::vector<uint8_t> bits;     // of booleans

  void Clear() {
    values.clear();
    ends.assign(1, 0);
  }
};

class Writer : public ParquetWriter {
 public:
  Writer(std::vector<ParquetOutputColumn> columns, std::shared_ptr<arrow::Schema> schema,
         uint64_t bytes)
      : columns_(std::move(columns)),
        schema_(std::move(schema)),
        out_(std::make_shared<ToVector>(bytes)),
        waiting_(columns_.size()) {}

  Status Add(const std::vector<ByteView>& row) override {
    uint64_t bytes = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      FB_RETURN_IF_ERROR(
          Check(columns_[i], row[i]).WithContext(fmt::format("column '{}'", columns_[i].name)));
      bytes += row[i].size();
    }
    if (rows_ > 0 && (bytes_ + bytes > kGroupBytes || rows_ == kGroupRows)) {
      FB_RETURN_IF_ERROR(WriteGroup());
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      Waiting& waiting = waiting_[i];
      waiting.values.insert(waiting.values.end(), row[i].begin(), row[i].end());
      if (columns_[i].kind == Kind::kNumber) continue;
      const uint64_t width = columns_[i].kind == Kind::kList ? BytesOfType(columns_[i].dtype) : 1;
      waiting.ends.push_back(static_cast<int32_t>(waiting.values.size() / width));
    }
    ++rows_;
    bytes_ += bytes;
    return {};
  }

  Result<std::vector<std::byte>> Finish() override {
    if (rows_ > 0 || writer_ == nullptr) FB_RETURN_IF_ERROR(WriteGroup());
    if (const auto closed = writer_->Close(); !closed.ok()) return Failed(closed);
    return out_->Take();
  }

 private:
  static Status Check(const ParquetOutputColumn& column, ByteView value) {
    const auto bad = [](std::string text) {
      return Status(Code::kInvalidArgument, std::move(text));
    };
    if (value.size() > kValueBytesMost) {
      return Status(Code::kResourceExhausted,
                    fmt::format("a value of {} bytes; at most {}", value.size(), kValueBytesMost));
    }
    const uint64_t width = BytesOfType(column.dtype);
    if (column.kind == Kind::kNumber && value.size() != width) {
      return bad(fmt::format("{} bytes for one {}", value.size(), column.dtype));
    }
    if (column.kind == Kind::kList && value.size() % width != 0) {
      return bad(fmt::format("{} bytes for numbers of {}", value.size(), column.dtype));
    }
    if (column.kind == Kind::kText &&
        !arrow::util::ValidateUTF8(reinterpret_cast<const uint8_t*>(value.data()),
                                   static_cast<int64_t>(value.size()))) {
      return bad("a text that is no UTF-8: NAME:bytes writes it as it is, --keys number no keys");
    }
    return {};
  }

  std::shared_ptr<arrow::ArrayData> NumbersOf(const ParquetOutputColumn& column, Waiting& waiting,
                                              std::shared_ptr<arrow::DataType> type) const {
    const auto count = static_cast<int64_t>(waiting.values.size() / BytesOfType(column.dtype));
    if (column.dtype != "bool") {
      return arrow::ArrayData::Make(std::move(type), count, {nullptr, View(waiting.values)}, 0);
    }
    waiting.bits.assign(static_cast<size_t>((count + 7) / 8), 0);
    for (int64_t i = 0; i < count; ++i) {
      const bool on = waiting.values[static_cast<size_t>(i)] != std::byte{0};
      arrow::bit_util::SetBitTo(waiting.bits.data(), i, on);
    }
    return arrow::ArrayData::Make(std::move(type), count,
                                  {nullptr, View(std::as_bytes(std::span(waiting.bits)))}, 0);
  }

  std::shared_ptr<arrow::Array> ArrayOf(size_t i) {
    const ParquetOutputColumn& column = columns_[i];
    Waiting& waiting = waiting_[i];
    const auto& type = schema_->field(static_cast<int>(i))->type();
    const auto rows = static_cast<int64_t>(rows_);
    if (column.kind == Kind::kNumber) return arrow::MakeArray(NumbersOf(column, waiting, type));
    auto offsets = View(std::as_bytes(std::span(waiting.ends)));
    if (column.kind == Kind::kList) {
      auto elements = NumbersOf(column, waiting, type->field(0)->type());
      return arrow::MakeArray(arrow::ArrayData::Make(type, rows, {nullptr, std::move(offsets)},
                                                     {std::move(elements)}, 0));
    }
    return arrow::MakeArray(
        arrow::ArrayData::Make(type, rows, {nullptr, std::move(offsets), View(waiting.values)}, 0));
  }

  // Once it is known how large rows are: pages are cut between batches of them.
  arrow::Status Open() {
    pq::WriterProperties::Builder builder;
    builder.memory_pool(arrow::system_memory_pool())
        ->version(pq::ParquetVersion::PARQUET_2_6)
        ->created_by("forebay " FOREBAY_VERSION)
        ->compression(arrow::Compression::ZSTD)
        ->data_pagesize(kPageBytes)
        ->enable_write_page_index()
        ->enable_page_checksum();
    int64_t batch = 1024;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const ParquetOutputColumn& column = columns_[i];
      const auto mean =
          static_cast<int64_t>(waiting_[i].values.size() / std::max<uint64_t>(rows_, 1));
      batch = std::clamp<int64_t>(kPageBytes / std::max<int64_t>(mean, 1), 1, batch);
      if (column.kind != Kind::kBytes) continue;
      builder.disable_dictionary(column.name);
      builder.disable_statistics(column.name);
      if (column.is_compressed) {
        builder.compression(column.name, arrow::Compression::UNCOMPRESSED);
      }
    }
    builder.write_batch_size(batch);
    pq::ArrowWriterProperties::Builder arrow_builder;
    arrow_builder.store_schema();
    ARROW_ASSIGN_OR_RAISE(writer_,
                          pq::arrow::FileWriter::Open(*schema_, arrow::system_memory_pool(), out_,
                                                      builder.build(), arrow_builder.build()));
    return arrow::Status::OK();
  }

  arrow::Status WriteColumns() {
    ARROW_RETURN_NOT_OK(writer_->NewRowGroup());
    for (size_t i = 0; i < columns_.size(); ++i) {
      ARROW_RETURN_NOT_OK(writer_->WriteColumnChunk(*ArrayOf(i)));
    }
    return arrow::Status::OK();
  }

  Status WriteGroup() {
    try {
      if (writer_ == nullptr) {
        if (const auto opened = Open(); !opened.ok()) return Failed(opened);
      }
      if (rows_ == 0) return {};
      if (const auto wrote = WriteColumns(); !wrote.ok()) return Failed(wrote);
    } catch (const std::exception& error) {
      return Status(Code::kInternal, Printable(error.what(), kSaid));
    }
    rows_ = bytes_ = 0;
    for (Waiting& waiting : waiting_) waiting.Clear();
    return {};
  }

  const std::vector<ParquetOutputColumn> columns_;
  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<ToVector> out_;
  std::unique_ptr<pq::arrow::FileWriter> writer_;
  std::vector<Waiting> waiting_;
  uint64_t rows_ = 0;  // that wait
  uint64_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<ParquetWriter>> MakeWriter(std::vector<ParquetOutputColumn> columns,
                                                  uint64_t bytes) {
  Shared::Get();
  arrow::FieldVector fields;
  for (const ParquetOutputColumn& column : columns) {
    auto type = TypeOf(column);
    if (type == nullptr) {
      return Status(Code::kInvalidArgument, fmt::format("column '{}': Parquet has no type for {}",
                                                        column.name, column.dtype));
    }
    fields.push_back(arrow::field(column.name, std::move(type), false));
  }
  return std::make_unique<Writer>(std::move(columns), arrow::schema(std::move(fields)), bytes);
}

}  // namespace forebay::format::parquet
