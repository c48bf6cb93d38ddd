// Samples as MosaicML's MDS: the same columns in all of them.
#include <fmt/core.h>

#include <algorithm>

#include "engine/pack_columns.h"
#include "engine/pack_target.h"
#include "format/mds_writer.h"

namespace forebay::engine {
namespace {

using format::MdsColumn;
using format::OutputField;

constexpr std::string_view kKeyColumn = "__key__";

// What streaming decodes a field of this name as.
std::string EncodingByName(std::string_view name) {
  struct Known {
    std::string_view name, encoding;
  };
  constexpr Known kKnown[] = {{"jpg", "jpeg"}, {"jpeg", "jpeg"}, {"png", "png"},
                              {"txt", "str"},  {"text", "str"},  {"transcript", "str"},
                              {"json", "json"}};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto* known = std::ranges::find(kKnown, last, &Known::name);
  return std::string(known == std::end(kKnown) ? "bytes" : known->encoding);
}

std::string EncodingOf(const PackField& field) {
  if (!field.encoding.empty()) return field.encoding == "float" ? "float32" : field.encoding;
  if (field.dtype.empty()) return EncodingByName(field.name);
  const std::string type = field.dtype == "bool" ? "uint8" : field.dtype;
  if (field.shape.empty()) return type == "int64" ? "int" : type;
  std::string shape;
  for (const int64_t size : field.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(size);
  }
  return "ndarray:" + type + ":" + shape;
}

class MdsShard : public PackShard {
 public:
  explicit MdsShard(format::MdsWriter writer) : writer_(std::move(writer)) {}

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    fields.push_back({.name = kKeyColumn, .bytes = AsBytes(sample.key), .dtype = {}, .shape = {}});
    std::vector<ByteView> values;
    for (const MdsColumn& column : writer_.columns()) {
      const auto field = std::ranges::find(fields, column.name, &OutputField::name);
      values.push_back(field->bytes);
      format::MdsValue value;
      FB_RETURN_IF_ERROR(format::OpenMdsValue(field->bytes, column.encoding, &value)
                             .WithContext(fmt::format("column '{}' of encoding {}", column.name,
                                                      column.encoding)));
    }
    return writer_.Add(values);
  }
  Result<std::vector<std::byte>> Finish() override { return writer_.Finish(); }

 private:
  format::MdsWriter writer_;
};

class MdsTarget : public PackTarget {
 public:
  MdsTarget() : PackTarget("mds", ".mds") {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    std::vector<MdsColumn> columns;
    uint64_t bytes = sizeof(uint32_t) + sample.key.size();
    for (const PackField& field : sample.fields) {
      const std::string encoding = EncodingOf(field);
      columns.push_back({field.name, encoding, format::MdsBytesOf(encoding)});
      bytes += sizeof(uint32_t) + field.bytes;
    }
    if (!sample.key.empty()) columns.push_back({std::string(kKeyColumn), "str"});
    std::ranges::sort(columns, {}, &MdsColumn::name);
    if (columns_.empty()) {
      FB_ASSIGN_OR_RETURN(const auto writer, format::MdsWriter::Make(columns));
      columns_ = std::move(columns);
    } else if (columns != columns_) {
      return Status(Code::kInvalidArgument,
                    fmt::format("it has other columns than the first sample: {}; that one has {}: "
                                "--column NAME=A|B chooses what all of them have",
                                NamesOf(columns), NamesOf(columns_)));
    }
    return bytes;
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    FB_ASSIGN_OR_RETURN(format::MdsWriter writer, format::MdsWriter::Make(columns_));
    constexpr uint64_t kHead = 64 << 10;  // the description that is put in front
    writer.Reserve(bytes + kHead);
    return std::make_unique<MdsShard>(std::move(writer));
  }
  std::string ShardName(uint64_t number, uint64_t count) const override {
    const size_t digits = std::max<size_t>(5, std::to_string(count - 1).size());
    return fmt::format("shard.{:0{}}.mds", number, digits);
  }
  std::string IndexOf(const std::vector<PackedShard>& shards) const override {
    std::vector<format::MdsShard> entries;
    for (const PackedShard& shard : shards) {
      entries.push_back({.columns = {},
                         .samples = shard.samples,
                         .raw = {shard.name, shard.bytes, {}},
                         .zip = {},
                         .compression = ""});
    }
    return format::MdsIndexText(columns_, entries);
  }

 private:
  static std::string NamesOf(const std::vector<MdsColumn>& columns) {
    std::string names;
    for (const MdsColumn& column : columns) {
      names += fmt::format("{}{}:{}", names.empty() ? "" : ", ", column.name, column.encoding);
    }
    return names;
  }

  std::vector<MdsColumn> columns_;
};

}  // namespace

std::unique_ptr<PackTarget> MakeMdsTarget() { return std::make_unique<MdsTarget>(); }

}  // namespace forebay::engine
