// Samples as WebDataset keeps them: a member for each field, KEY.FIELD.
#include <fmt/core.h>

#include <set>

#include "engine/pack_columns.h"
#include "engine/pack_target.h"
#include "format/tar.h"
#include "format/tar_writer.h"

namespace forebay::engine {
namespace {

using format::OutputField;
using format::TarWriter;

bool IsNumber(std::string_view dtype) { return format::BytesOfType(dtype) != 0; }

// WebDataset reads these as text.
bool IsWrittenAsText(const PackField& field) {
  return IsClassField(field.name) && field.shape.empty() && field.dtype.starts_with("int");
}

std::string KeyOf(const PackSample& sample) {
  return sample.key.empty() ? fmt::format("{:09}", sample.number) : sample.key;
}

std::string NameOf(const PackSample& sample, const PackField& field) {
  const bool array = IsNumber(field.dtype) && !IsWrittenAsText(field);
  return fmt::format("{}.{}{}", KeyOf(sample), field.name, array ? ".npy" : "");
}

class TarShard : public PackShard {
 public:
  explicit TarShard(uint64_t bytes) { writer_.Reserve(bytes); }

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    for (size_t i = 0; i < fields.size(); ++i) {
      const std::string name = NameOf(sample, sample.fields[i]);
      if (!IsNumber(fields[i].dtype)) {
        FB_RETURN_IF_ERROR(writer_.Add(name, fields[i].bytes));
      } else if (IsWrittenAsText(sample.fields[i])) {
        FB_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, format::IntegersOf(fields[i]));
        FB_RETURN_IF_ERROR(writer_.Add(name, AsBytes(std::to_string(numbers.at(0)))));
      } else {
        FB_RETURN_IF_ERROR(writer_.Add(name, format::NpyFileOf(fields[i])));
      }
    }
    return {};
  }
  Result<std::vector<std::byte>> Finish() override { return writer_.Finish(); }

 private:
  TarWriter writer_;
};

class TarTarget : public PackTarget {
 public:
  TarTarget() : PackTarget("tar", ".tar") {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    constexpr uint64_t kHeadOfArray = 1024;
    const std::string key = KeyOf(sample);
    uint64_t bytes = 0;
    std::set<std::string> names;
    for (const PackField& field : sample.fields) {
      const std::string name = NameOf(sample, field);
      const auto split = format::SplitSampleName(name);
      if (!split || split->key != key || format::IsMetadataName(name) || name.contains('\0')) {
        return Status(Code::kInvalidArgument,
                      fmt::format("as a tar member it would be '{}', which WebDataset would take "
                                  "for another sample's or nobody's: keys must have no dot behind "
                                  "their last slash; --keys number numbers them",
                                  name));
      }
      if (!names.insert(LowerAscii(name.substr(key.size()))).second) {
        return Status(Code::kInvalidArgument,
                      fmt::format("two fields would be '{}' to WebDataset", name));
      }
      bytes += TarWriter::BytesOf(name, field.bytes + (IsNumber(field.dtype) ? kHeadOfArray : 0));
    }
    // Members of one key that follow each other are one sample, whatever they were.
    if (key == last_key_) {
      return Status(Code::kInvalidArgument,
                    fmt::format("it has the key '{}' of the sample before: in a tar file they "
                                "would be one; --keys number numbers them",
                                key));
    }
    last_key_ = key;
    if (!sample.fields.empty()) return bytes;
    return Status(Code::kInvalidArgument, "it has no field, and so no member of a tar file");
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    return std::make_unique<TarShard>(bytes + 2 * TarWriter::kRecordBytes);
  }

 private:
  std::string last_key_;
};

}  // namespace

std::unique_ptr<PackTarget> MakeTarTarget() { return std::make_unique<TarTarget>(); }

}  // namespace forebay::engine
