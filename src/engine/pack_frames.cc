// Samples as TFRecords of tf.train.Example, and as MXNet's image records.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "engine/pack_columns.h"
#include "engine/pack_target.h"
#include "format/frames_writer.h"
#include "format/little_endian.h"
#include "format/tfrecord.h"

namespace forebay::engine {
namespace {

using format::OutputField;
using Multipart = format::RecordIoOptions::Multipart;

constexpr std::string_view kKeyFeature = "__key__";
// What tags and lengths take at most, for planning.
constexpr uint64_t kAroundField = 40;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

uint64_t AboutBytes(const PackSample& sample) {
  uint64_t bytes = kAroundField + sample.key.size();
  for (const PackField& field : sample.fields) {
    bytes += kAroundField + field.name.size() + field.bytes;
  }
  return bytes;
}

class FramesShard : public PackShard {
 public:
  Result<std::vector<std::byte>> Finish() override { return std::move(bytes_); }

 protected:
  explicit FramesShard(uint64_t bytes) { bytes_.reserve(bytes); }
  std::vector<std::byte> bytes_;
};

class TfRecordShard : public FramesShard {
 public:
  TfRecordShard(uint64_t bytes, bool raw) : FramesShard(bytes), raw_(raw) {}

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    if (raw_) return format::AppendTfRecord(fields.at(0).bytes, &bytes_);
    if (!sample.key.empty()) {
      fields.push_back(
          {.name = kKeyFeature, .bytes = AsBytes(sample.key), .dtype = {}, .shape = {}});
    }
    example_.clear();
    FB_RETURN_IF_ERROR(format::AppendExample(std::move(fields), &example_));
    return format::AppendTfRecord(example_, &bytes_);
  }

 private:
  const bool raw_;
  std::vector<std::byte> example_;
};

class TfRecordTarget : public PackTarget {
 public:
  explicit TfRecordTarget(bool raw) : PackTarget("tfrecord", ".tfrecord"), raw_(raw) {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    return AboutBytes(sample) + format::kTfRecordFraming;
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    return std::make_unique<TfRecordShard>(bytes, raw_);
  }

 private:
  const bool raw_;
};

// Which of a sample's fields is what in an image record; none: there is no such.
struct ImageFields {
  std::optional<size_t> image, label, id;
};

Result<ImageFields> FieldsOf(const PackSample& sample) {
  constexpr std::string_view kImages[] = {"image", "img", "jpg", "jpeg", "png",
                                          "webp",  "bmp", "gif", "tif",  "tiff"};
  ImageFields fields;
  const auto take = [](std::optional<size_t>& place, size_t i) {
    const bool free = !place;
    place = i;
    return free;
  };
  for (size_t i = 0; i < sample.fields.size(); ++i) {
    const PackField& field = sample.fields[i];
    const bool image =
        field.dtype.empty() && std::ranges::find(kImages, field.name) != std::end(kImages);
    bool free = true;
    if (IsLabelField(field.name)) free = take(fields.label, i);
    if (image) free = take(fields.image, i);
    if (field.name == "id" && field.dtype == "int64") free = take(fields.id, i);
    if (!free) {
      return Bad(
          fmt::format("'{}' is its second image or label: choose, as in --column "
                      "'image=jpg|png' --column label=cls",
                      field.name));
    }
  }
  if (fields.image) return fields;
  return Bad("it has no image: choose the field, as in --column image=left.jpg --column label=cls");
}

Result<std::vector<float>> LabelsOf(const OutputField& field) {
  if (field.dtype == "float32") return format::FloatsOf(field);
  std::vector<float> labels;
  if (!field.dtype.empty()) {
    FB_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, format::IntegersOf(field));
    for (const int64_t number : numbers) {
      labels.push_back(static_cast<float>(number));
      if (static_cast<int64_t>(labels.back()) != number) {
        return Bad(fmt::format("label {} is no float32, as MXNet's labels are", number));
      }
    }
    return labels;
  }
  std::string_view text = AsText(field.bytes);
  constexpr std::string_view kBetween = " \t\r\n,";
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    FB_ASSIGN_OR_RETURN(const std::string number, NumberFromText(word, "float32"));
    labels.push_back(format::Load<float>(AsBytes(number)));
  }
  if (labels.empty()) return Bad("its label is empty");
  return labels;
}

// An .idx lies beside each shard, as MXNet's readers want it for random access.
class ImageShard : public FramesShard {
 public:
  explicit ImageShard(uint64_t bytes) : FramesShard(bytes) {}

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    FB_ASSIGN_OR_RETURN(const ImageFields which, FieldsOf(sample));
    std::vector<float> labels = {0};
    if (which.label) {
      FB_ASSIGN_OR_RETURN(labels, LabelsOf(fields[*which.label]));
    }
    uint64_t id = sample.number;
    if (which.id && !sample.key.empty()) id = format::Load<uint64_t>(fields[*which.id].bytes);
    index_ += fmt::format("{}\t{}\n", id, bytes_.size());
    return format::AppendRecordIo(format::ImagePayload(id, labels, fields[*which.image].bytes),
                                  Multipart::kMxnet, &bytes_);
  }
  std::string Sidecar() const override { return index_; }

 private:
  std::string index_;
};

class ImageTarget : public PackTarget {
 public:
  explicit ImageTarget(bool no_labels)
      : PackTarget("recordio-image", ".rec", ".idx"), no_labels_(no_labels) {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    FB_ASSIGN_OR_RETURN(const ImageFields which, FieldsOf(sample));
    if (!which.label && !no_labels_) {
      return Bad(
          "it has no label (a field 'label', 'cls' or 'class'): --labels folder numbers the "
          "folders, --labels none writes 0");
    }
    return AboutBytes(sample);
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    return std::make_unique<ImageShard>(bytes);
  }

 private:
  const bool no_labels_;
};

// The bytes of one field, as they are. An .idx lies beside it as beside image records.
class RecordIoShard : public FramesShard {
 public:
  explicit RecordIoShard(uint64_t bytes) : FramesShard(bytes) {}

  Status Add(const PackSample& sample, std::vector<OutputField> fields) override {
    index_ += fmt::format("{}\t{}\n", sample.number, bytes_.size());
    return format::AppendRecordIo(fields.at(0).bytes, Multipart::kMxnet, &bytes_);
  }
  std::string Sidecar() const override { return index_; }

 private:
  std::string index_;
};

class RecordIoTarget : public PackTarget {
 public:
  RecordIoTarget() : PackTarget("recordio", ".rec", ".idx") {}

  Result<uint64_t> Plan(const PackSample& sample) override {
    if (sample.fields.size() == 1) return AboutBytes(sample);
    return Bad(
        fmt::format("it has {} fields, a record is the bytes of one: choose it, as in "
                    "--column jpg",
                    sample.fields.size()));
  }
  Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const override {
    return std::make_unique<RecordIoShard>(bytes);
  }
};

}  // namespace

std::unique_ptr<PackTarget> MakeRecordIoTarget() { return std::make_unique<RecordIoTarget>(); }
std::unique_ptr<PackTarget> MakeTfRecordTarget(bool raw) {
  return std::make_unique<TfRecordTarget>(raw);
}
std::unique_ptr<PackTarget> MakeImageTarget(bool no_labels) {
  return std::make_unique<ImageTarget>(no_labels);
}

}  // namespace forebay::engine
