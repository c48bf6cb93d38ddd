#include "format/frames_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/crc32c.h"
#include "format/little_endian.h"
#include "format/tfrecord.h"
#include "format/wire_writer.h"

namespace forebay::format {
namespace {

constexpr uint64_t kMaxPart = (uint64_t{1} << 29) - 1;

enum Flag : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

void AppendPart(Flag flag, ByteView data, std::vector<std::byte>* out) {
  AppendWord(out, kRecordIoMagic);
  AppendWord(out, static_cast<uint32_t>(flag) << 29 | static_cast<uint32_t>(data.size()));
  Append(out, data);
  out->resize(PaddedTo(out->size(), 4));
}

// The numbers of Feature's lists.
enum List : uint32_t { kBytesList = 1, kFloatList = 2, kInt64List = 3 };

std::vector<std::byte> IntegerList(const std::vector<int64_t>& numbers) {
  std::vector<std::byte> packed;
  WireWriter writer(&packed);
  for (const int64_t number : numbers) writer.Varint(static_cast<uint64_t>(number));
  return packed;
}

// A list of one field of bytes: of the only value, or of packed numbers.
void AppendFeature(std::string_view name, List list, ByteView value, std::vector<std::byte>* out) {
  const uint64_t in_list = WireWriter::FieldBytes(value.size());
  const uint64_t in_feature = WireWriter::FieldBytes(in_list);
  WireWriter writer(out);
  writer.Head(1, WireWriter::FieldBytes(name.size()) + WireWriter::FieldBytes(in_feature));
  writer.Bytes(1, AsBytes(name));
  writer.Head(2, in_feature);
  writer.Head(list, in_list);
  writer.Bytes(1, value);
}

Status AppendFeature(const OutputField& field, std::vector<std::byte>* out) {
  if (field.dtype == "float32" || field.dtype == "float16") {
    FB_ASSIGN_OR_RETURN(const std::vector<float> numbers, FloatsOf(field));
    AppendFeature(field.name, kFloatList, std::as_bytes(std::span(numbers)), out);
  } else if (field.dtype.empty() || field.dtype == "float64" || BytesOfType(field.dtype) == 0) {
    AppendFeature(field.name, kBytesList, field.bytes, out);
  } else {
    FB_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, IntegersOf(field));
    AppendFeature(field.name, kInt64List, IntegerList(numbers), out);
  }
  return {};
}

}  // namespace

Status AppendTfRecord(ByteView data, std::vector<std::byte>* out) {
  if (data.size() > TfRecordOptions::kMaxRecordBytes) {
    return Status(Code::kInvalidArgument,
                  fmt::format("a record of {} bytes, of a TFRecord at most {} are read",
                              data.size(), TfRecordOptions::kMaxRecordBytes));
  }
  const uint64_t length = data.size();
  AppendWord(out, length);
  AppendWord(out, MaskCrc32c(Crc32c(std::as_bytes(std::span(&length, 1)))));
  Append(out, data);
  AppendWord(out, MaskCrc32c(Crc32c(data)));
  return {};
}

Status AppendRecordIo(ByteView payload, RecordIoOptions::Multipart multipart,
                      std::vector<std::byte>* out) {
  if (payload.size() > kMaxPart) {
    return Status(Code::kInvalidArgument, fmt::format("a record of {} bytes, RecordIO has room for "
                                                      "{}",
                                                      payload.size(), kMaxPart));
  }
  uint64_t begin = 0;
  if (multipart == RecordIoOptions::Multipart::kMxnet) {
    for (uint64_t at = 0; at + 4 <= payload.size(); at += 4) {
      if (Load<uint32_t>(payload, at) != kRecordIoMagic) continue;
      AppendPart(begin == 0 ? kFirst : kMiddle, payload.subspan(begin, at - begin), out);
      begin = at + 4;
    }
  }
  AppendPart(begin == 0 ? kWhole : kLast, payload.subspan(begin), out);
  return {};
}

std::vector<std::byte> ImagePayload(uint64_t id, const std::vector<float>& labels, ByteView image) {
  std::vector<std::byte> payload;
  payload.reserve(24 + 4 * labels.size() + image.size());
  const bool one = labels.size() == 1;
  AppendWord(&payload, one ? uint32_t{0} : static_cast<uint32_t>(labels.size()));
  AppendWord(&payload, one ? labels[0] : 0.0F);
  AppendWord(&payload, id);
  AppendWord(&payload, uint64_t{0});
  if (!one) Append(&payload, std::as_bytes(std::span(labels)));
  Append(&payload, image);
  return payload;
}

Status AppendExample(std::vector<OutputField> fields, std::vector<std::byte>* out) {
  std::ranges::sort(fields, {}, &OutputField::name);
  std::vector<std::byte> features;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0 && fields[i].name == fields[i - 1].name) {
      return Status(Code::kInvalidArgument, fmt::format("two features '{}'", fields[i].name));
    }
    FB_RETURN_IF_ERROR(AppendFeature(fields[i], &features));
  }
  WireWriter(out).Bytes(1, features);
  return {};
}

}  // namespace forebay::format
