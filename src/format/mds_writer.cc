#include "format/mds_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "format/little_endian.h"
#include "format/mds_json.h"

namespace forebay::format {
namespace {

struct Sized {
  std::string_view encoding;
  uint64_t bytes;
};

constexpr Sized kSized[] = {{"int", 8},    {"uint8", 1},   {"uint16", 2},  {"uint32", 4},
                            {"uint64", 8}, {"int8", 1},    {"int16", 2},   {"int32", 4},
                            {"int64", 8},  {"float16", 2}, {"float32", 4}, {"float64", 8}};

}  // namespace

std::optional<uint64_t> MdsBytesOf(std::string_view encoding) {
  const auto* known = std::ranges::find(kSized, encoding, &Sized::encoding);
  if (known == std::end(kSized)) return std::nullopt;
  return known->bytes;
}

Result<MdsWriter> MdsWriter::Make(std::vector<MdsColumn> columns) {
  std::ranges::sort(columns, {}, &MdsColumn::name);
  const auto twice = std::ranges::adjacent_find(columns, {}, &MdsColumn::name);
  if (twice != columns.end()) {
    return Status(Code::kInvalidArgument, fmt::format("two columns '{}'", twice->name));
  }
  if (columns.empty()) return Status(Code::kInvalidArgument, "an MDS shard without a column");
  FB_ASSIGN_OR_RETURN(const auto parsed, ParseMdsConfig(MdsConfigText(columns), {}));
  if (parsed != columns) {
    return Status(Code::kInvalidArgument, "a column's name or encoding is no UTF-8");
  }
  return MdsWriter(std::move(columns));
}

Status MdsWriter::Add(const std::vector<ByteView>& values) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const MdsColumn& column = columns_[i];
    if (values[i].size() == column.bytes.value_or(values[i].size()) &&
        values[i].size() <= UINT32_MAX) {
      continue;
    }
    return Status(Code::kInvalidArgument,
                  fmt::format("column '{}' is of encoding {}, which {} bytes are not", column.name,
                              column.encoding, values[i].size()));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].bytes) AppendWord(&samples_, static_cast<uint32_t>(values[i].size()));
  }
  for (const ByteView value : values) Append(&samples_, value);
  if (samples_.size() > UINT32_MAX) {
    return Status(Code::kResourceExhausted,
                  "an MDS shard of 4 GiB: its offsets have 32 bits; give a smaller --shard-size");
  }
  ends_.push_back(static_cast<uint32_t>(samples_.size()));
  return {};
}

Result<std::vector<std::byte>> MdsWriter::Finish() {
  const std::string config = MdsConfigText(columns_);
  const uint64_t head = sizeof(uint32_t) * (ends_.size() + 2) + config.size();
  if (head + samples_.size() > UINT32_MAX) {
    return Status(Code::kResourceExhausted,
                  "an MDS shard of 4 GiB: its offsets have 32 bits; give a smaller --shard-size");
  }
  std::vector<std::byte> front;
  front.reserve(head);
  AppendWord(&front, static_cast<uint32_t>(ends_.size()));
  AppendWord(&front, static_cast<uint32_t>(head));
  for (const uint32_t end : ends_) AppendWord(&front, static_cast<uint32_t>(head + end));
  Append(&front, AsBytes(config));
  samples_.insert(samples_.begin(), front.begin(), front.end());
  return std::move(samples_);
}

}  // namespace forebay::format
