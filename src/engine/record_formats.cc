#include "engine/record_formats.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "format/tar.h"

namespace forebay::engine {
namespace {

using catalog::RecordFormat;

struct Known {
  std::string name;
  RecordFormat format;
};

// A tar header has a checksum of its own: the sum of its bytes, with spaces in its place.
Result<bool> IsTar(const format::Shard& shard) {
  constexpr size_t kHeader = 512, kSum = 148, kSumBytes = 8;
  if (shard.size < kHeader) return false;
  std::vector<std::byte> head(kHeader);
  FB_RETURN_IF_ERROR(shard.read({0, kHeader}, head));
  uint64_t sum = 0;
  for (size_t i = 0; i < kHeader; ++i) {
    sum += i >= kSum && i < kSum + kSumBytes ? ' ' : static_cast<uint8_t>(head[i]);
  }
  uint64_t declared = 0;
  for (const char c : AsText(ByteView(head).subspan(kSum, kSumBytes))) {
    if (c >= '0' && c <= '7') declared = declared * 8 + static_cast<uint64_t>(c - '0');
  }
  return sum == declared;
}

const std::vector<Known>& All() {
  static const std::vector<Known> all = [] {
    std::vector<Known> known;
    known.push_back(
        {"tar",
         {.name = "tar", .is_shard = IsTar, .scan = [](const auto& shard, const auto& on, auto* r) {
            return format::ScanTar(shard, {}, on, r);
          }}});
    return known;
  }();
  return all;
}

}  // namespace

const std::vector<std::string>& RecordFormatNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Known& one : All()) list.push_back(one.name);
    return list;
  }();
  return names;
}

Result<RecordFormat> RecordFormatOf(const std::string& name) {
  const auto it = std::ranges::find(All(), name, &Known::name);
  if (it != All().end()) return it->format;
  return Status(Code::kInvalidArgument, fmt::format("format '{}': auto, video, files, {}", name,
                                                    fmt::join(RecordFormatNames(), ", ")));
}

Result<std::string> FormatOfShard(const format::Shard& shard) {
  for (const Known& one : All()) {
    FB_ASSIGN_OR_RETURN(const bool is, one.format.is_shard(shard));
    if (is) return one.name;
  }
  return std::string();
}

std::string FormatName(const std::string& format, const std::string& options) {
  for (const Known& one : All()) {
    if (one.format.name == format && one.format.options == options) return one.name;
  }
  return format;
}

}  // namespace forebay::engine
