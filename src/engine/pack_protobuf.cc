// Samples as SageMaker's RecordIO-protobuf.
#include <utility>

#include "engine/pack_columns.h"
#include "engine/pack_rows.h"
#include "engine/pack_target.h"
#include "format/frames_writer.h"

namespace forebay::engine {
namespace {

using format::OutputField;
using Multipart = format::RecordIoOptions::Multipart;

constexpr uint64_t kAroundField = 40;  // tags and lengths, at most

class ProtobufShard : public PackShard {
 public:
  ProtobufShard(uint64_t bytes, bool raw, bool arrays, const PackOptions& options)
      : raw_(raw), arrays_(arrays), options_(options), rows_(options) {
    bytes_.reserve(bytes);
  }

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    if (raw_) {
      ++records_;
      return format::AppendRecordIo(fields.at(0).bytes, Multipart::kSageMaker, &bytes_);
    }
    if (arrays_) {
      return ReadArrays(fields, [this](PackRow row) { return AddRow(std::move(row), ""); });
    }
    rows_.Clear();
    PackRow row;
    for (OutputField& field : fields) {
      if (field.name == "libsvm") {
        FB_RETURN_IF_ERROR(rows_.ReadLibsvm(field.bytes, &row));
        continue;
      }
      if (field.name == "npy" || field.name.ends_with(".npy")) {
        FB_RETURN_IF_ERROR(ReadNpy(&field));
      }
      if (field.name == "csv") FB_RETURN_IF_ERROR(rows_.ReadCsv(&field));
      const bool by_column = options_.label_column >= 0;
      if (by_column) FB_RETURN_IF_ERROR(rows_.TakeLabel(&field, &row));
      const bool label = IsLabelField(field.name) && !by_column;
      (label ? row.labels : row.features).push_back({std::move(field)});
    }
    return AddRow(std::move(row), sample.key);
  }
  Result<std::vector<std::byte>> Finish() override { return std::move(bytes_); }
  std::optional<uint64_t> records() const override { return records_; }

 private:
  Status AddRow(PackRow row, std::string_view uid) {
    // The only one of a kind is called so by SageMaker's own readers and writers.
    if (row.features.size() == 1) row.features[0].field.name = "values";
    if (row.labels.size() == 1) row.labels[0].field.name = "values";
    record_.clear();
    FB_RETURN_IF_ERROR(format::AppendSageMakerRecord(std::move(row.features), std::move(row.labels),
                                                     uid, &record_));
    ++records_;
    return format::AppendRecordIo(record_, Multipart::kSageMaker, &bytes_);
  }

  const bool raw_;
  const bool arrays_;
  const PackOptions& options_;
  PackRows rows_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> record_;
  uint64_t records_ = 0;
};

class ProtobufTarget : public PackTarget {
 public:
  ProtobufTarget(bool raw, bool arrays, const PackOptions& options)
      : PackTarget("recordio-protobuf", ".pbr"), raw_(raw), arrays_(arrays), options_(options) {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    uint64_t bytes = kAroundField + sample.key.size();
    for (const PackField& field : sample.fields) {
      bytes += kAroundField + field.name.size() + field.bytes;
    }
    return bytes;
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    return std::make_unique<ProtobufShard>(bytes, raw_, arrays_, options_);
  }

 private:
  const bool raw_;
  const bool arrays_;
  const PackOptions& options_;
};

}  // namespace

std::unique_ptr<PackTarget> MakeProtobufTarget(bool raw, bool arrays, const PackOptions& options) {
  return std::make_unique<ProtobufTarget>(raw, arrays, options);
}

}  // namespace forebay::engine
