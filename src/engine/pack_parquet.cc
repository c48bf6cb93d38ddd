// Samples as rows of Parquet tables: the same columns in all of them.
#include <fmt/core.h>

#include <algorithm>

#include "engine/pack_columns.h"
#include "engine/pack_target.h"
#include "format/parquet.h"
#include "format/parquet_writer.h"

namespace forebay::engine {
namespace {

using format::OutputField;
using format::ParquetOutputColumn;

constexpr std::string_view kKeyColumn = "__key__";
// What pages and the footer take beside a row's values, about.
constexpr uint64_t kAroundValue = 8;

template <size_t n>
bool EndsAs(std::string_view name, const std::string_view (&endings)[n]) {
  const std::string last = LowerAscii(name.substr(name.rfind('.') + 1));
  return std::ranges::find(endings, last) != std::end(endings);
}

bool IsTextField(std::string_view name) {
  constexpr std::string_view kNames[] = {"txt", "text", "transcript", "caption", "json"};
  return EndsAs(name, kNames);
}

bool IsCompressedField(std::string_view name) {
  constexpr std::string_view kNames[] = {"jpg", "jpeg", "png",  "webp", "gif", "image", "img",
                                         "mp4", "mkv",  "webm", "mov",  "avi", "mp3",   "flac",
                                         "ogg", "m4a",  "npz",  "gz",   "zst", "zip",   "avif"};
  return EndsAs(name, kNames);
}

Result<ParquetOutputColumn> ColumnOf(const PackField& field) {
  using Kind = ParquetOutputColumn::Kind;
  ParquetOutputColumn column{.name = field.name, .dtype = field.dtype};
  if (field.dtype.empty()) {
    const bool text = IsTextField(field.name) && field.encoding != "bytes";
    column.kind = text ? Kind::kText : Kind::kBytes;
    column.is_compressed = !text && IsCompressedField(field.name);
    return column;
  }
  column.kind = field.shape.empty() ? Kind::kNumber : Kind::kList;
  if (field.shape.size() <= 1) return column;
  return Status(Code::kInvalidArgument,
                fmt::format("'{}' has {} dimensions, a list has one: '{}:bytes' of its file, or "
                            "--to mds, keeps it",
                            field.name, field.shape.size(), field.name));
}

class ParquetShard : public PackShard {
 public:
  ParquetShard(const std::vector<ParquetOutputColumn>& columns,
               std::unique_ptr<format::ParquetWriter> writer)
      : columns_(columns), writer_(std::move(writer)) {}

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    fields.push_back({.name = kKeyColumn, .bytes = AsBytes(sample.key), .dtype = {}, .shape = {}});
    row_.clear();
    for (const ParquetOutputColumn& column : columns_) {
      row_.push_back(std::ranges::find(fields, column.name, &OutputField::name)->bytes);
    }
    return writer_->Add(row_);
  }
  Result<std::vector<std::byte>> Finish() override { return writer_->Finish(); }

 private:
  const std::vector<ParquetOutputColumn>& columns_;  // the target's
  std::unique_ptr<format::ParquetWriter> writer_;
  std::vector<ByteView> row_;
};

class ParquetTarget : public PackTarget {
 public:
  ParquetTarget() : PackTarget("parquet", ".parquet") {}

  bool is_table() const override { return true; }
  Result<uint64_t> Plan(const PackSample& sample) override {
    std::vector<ParquetOutputColumn> columns;
    uint64_t bytes = kAroundValue + sample.key.size();
    for (const PackField& field : sample.fields) {
      FB_ASSIGN_OR_RETURN(ParquetOutputColumn column, ColumnOf(field));
      columns.push_back(std::move(column));
      bytes += kAroundValue + field.bytes;
    }
    if (!sample.key.empty()) {
      columns.push_back(
          {.name = std::string(kKeyColumn), .kind = ParquetOutputColumn::Kind::kText});
    }
    if (columns_.empty()) {
      columns_ = std::move(columns);
    } else if (!std::ranges::is_permutation(columns, columns_)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("it has other columns than the first sample: {}; that one has {}: "
                                "--column NAME=A|B chooses what all of them have",
                                NamesOf(columns), NamesOf(columns_)));
    }
    return bytes;
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    FB_ASSIGN_OR_RETURN(auto writer, format::ParquetWriter::Make(columns_, bytes));
    return std::make_unique<ParquetShard>(columns_, std::move(writer));
  }

 private:
  static std::string NamesOf(const std::vector<ParquetOutputColumn>& columns) {
    std::string names;
    for (const ParquetOutputColumn& column : columns) {
      const bool list = column.kind == ParquetOutputColumn::Kind::kList;
      names += fmt::format("{}{}{}{}{}", names.empty() ? "" : ", ", column.name,
                           column.dtype.empty() ? "" : ":", column.dtype, list ? "[]" : "");
    }
    return names;
  }

  std::vector<ParquetOutputColumn> columns_;
};

}  // namespace

Result<std::unique_ptr<PackTarget>> MakeParquetTarget() {
  FB_RETURN_IF_ERROR(format::ParquetIsReadable());
  return std::make_unique<ParquetTarget>();
}

}  // namespace forebay::engine
