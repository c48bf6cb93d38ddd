// SageMaker's Record: named tensors of features and labels, dense or sparse.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "format/sagemaker_record.h"
#include "ops/dtype.h"
#include "ops/parser.h"
#include "ops/sparse.h"

namespace forebay::ops {
namespace {

using format::SageMakerValue;
using Kind = SageMakerValue::Kind;

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kFloat32:
      return "float32";
    case Kind::kFloat64:
      return "float64";
    case Kind::kInt32:
      return "int32";
    case Kind::kBytes:
      return "bytes";
    case Kind::kNone:
      break;
  }
  return "nothing";
}

Status Bad(std::string text) { return Status(Code::kDataLoss, std::move(text)); }

void Assign(ByteView bytes, std::vector<std::byte>* to) { to->assign(bytes.begin(), bytes.end()); }

class RecordParser : public Parser {
 public:
  explicit RecordParser(const ParseRecordOp& op) : features_(op.features) {
    for (const RecordFeature& feature : features_) {
      const std::string& name = feature.name.empty() ? feature.key : feature.name;
      const bool ragged = feature.ragged || feature.sparse;
      first_.push_back(results_.size());
      results_.push_back(
          {name, feature.dtype, ragged ? std::vector<int64_t>() : feature.shape, ragged});
      if (feature.sparse) results_.push_back({name + "_indices", "int64", {}, true});
    }
  }
  const std::vector<Parsed>& results() const override { return results_; }
  // An int32 may be one byte; of a dense tensor it gets a place of 8 bytes beside it. A tensor may
  // be wanted by several names.
  uint64_t ragged_each() const override {
    uint64_t all = 0;
    for (const RecordFeature& feature : features_) {
      if (feature.ragged) all += sizeof(int32_t);
      if (feature.sparse) all += sizeof(int32_t) + sizeof(int64_t);
    }
    return all;
  }

  Status Parse(ByteView field, const ParserOut& out) const override {
    format::SageMakerRecord record;
    FB_RETURN_IF_ERROR(format::OpenSageMakerRecord(field, &record));
    for (size_t i = 0; i < features_.size(); ++i) {
      const RecordFeature& wanted = features_[i];
      const auto& all = wanted.label ? record.labels : record.features;
      const auto found = std::ranges::find(all, wanted.key, &SageMakerValue::name);
      const std::string_view map = wanted.label ? "label" : "feature";
      if (found == all.end()) return Bad(fmt::format("there is no {} '{}'", map, wanted.key));
      auto status = Take(wanted, *found, first_[i], out);
      if (status.ok()) continue;
      return std::move(status).WithContext(fmt::format("the {} '{}'", map, wanted.key));
    }
    return {};
  }

 private:
  static uint64_t CountOf(const RecordFeature& wanted) {
    return BytesOf(wanted.dtype, wanted.shape) / static_cast<uint64_t>(BytesOf(wanted.dtype));
  }
  // Of the dense tensor. A sparse one always says it, and it has been checked.
  static uint64_t SizeOf(const SageMakerValue& value) {
    if (!value.sparse) return value.count();
    return std::accumulate(value.shape.begin(), value.shape.end(), uint64_t{1}, std::multiplies());
  }

  static Status Take(const RecordFeature& wanted, const SageMakerValue& value, size_t result,
                     const ParserOut& out) {
    if (NameOf(value.kind) != wanted.dtype) {
      return Bad(fmt::format("it holds {}, not {}", NameOf(value.kind), wanted.dtype));
    }
    if (value.kind == Kind::kBytes) {
      if (value.bytes.size() != 1) {
        return Bad(fmt::format("it has {} values, and 1 is wanted", value.bytes.size()));
      }
      out.fields[result] = value.bytes[0];
      return {};
    }
    if (wanted.sparse) return TakeSparse(wanted, value, result, out);
    if (wanted.ragged) {
      if (value.sparse) return Bad("it is sparse: ask for it as sparse, or with its shape");
      Assign(value.values, &out.ragged[result]);
      return {};
    }
    const uint64_t count = CountOf(wanted);
    if (SizeOf(value) != count) {
      return Bad(fmt::format("it has {} values, and {} are wanted", SizeOf(value), count));
    }
    WriteDense(value, out.arrays[result]);
    return {};
  }

  static void WriteDense(const SageMakerValue& value, MutableBytes to) {
    if (to.empty()) return;
    if (!value.sparse) {
      std::ranges::copy(value.values, to.begin());
      return;
    }
    std::ranges::fill(to, std::byte{0});
    const size_t each = value.keys.empty() ? 0 : value.values.size() / value.keys.size();
    for (size_t i = 0; i < value.keys.size(); ++i) {
      std::memcpy(to.data() + value.keys[i] * each, value.values.data() + i * each, each);
    }
  }

  static Status TakeSparse(const RecordFeature& wanted, const SageMakerValue& value, size_t result,
                           const ParserOut& out) {
    const uint64_t size = SizeOf(value);
    if (!wanted.shape.empty() && size != CountOf(wanted)) {
      return Bad(fmt::format("a tensor of {} numbers, and {} are wanted", size, CountOf(wanted)));
    }
    std::vector<uint64_t> every;
    if (!value.sparse) {
      every.resize(size);
      std::iota(every.begin(), every.end(), uint64_t{0});
    }
    Assign(value.values, &out.ragged[result]);
    Assign(std::as_bytes(std::span(value.sparse ? value.keys : every)), &out.ragged[result + 1]);
    return OrderSparse(size, static_cast<uint64_t>(BytesOf(wanted.dtype)), &out.ragged[result + 1],
                       &out.ragged[result]);
  }

  std::vector<RecordFeature> features_;
  std::vector<size_t> first_;  // of each feature, its first result
  std::vector<Parsed> results_;
};

}  // namespace

std::unique_ptr<const Parser> MakeRecordParser(const ParseRecordOp& op) {
  return std::make_unique<RecordParser>(op);
}

}  // namespace forebay::ops
