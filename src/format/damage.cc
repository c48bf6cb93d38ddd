#include "format/damage.h"

#include <fmt/core.h>

namespace forebay::format {
namespace {

ErrorDetail At(const Place& place, uint64_t size) {
  ErrorDetail detail;
  uint64_t end = 0;
  if (__builtin_add_overflow(place.offset, size, &end) || end > INT64_MAX) return detail;
  detail.offset = static_cast<int64_t>(place.offset);
  detail.end = static_cast<int64_t>(end);
  return detail;
}

std::string Text(const Place& place, std::string_view what) {
  if (place.shard.empty()) return fmt::format("offset {}: {}", place.offset, what);
  return fmt::format("{}, offset {}: {}", place.shard, place.offset, what);
}

std::string CutText(std::string_view what, uint64_t expected, uint64_t found) {
  return fmt::format("{} is cut: expected {} bytes, found {}", what, expected, found);
}

}  // namespace

Status Damaged(const Place& place, std::string_view expected, std::string_view found) {
  return {Code::kDataLoss, Text(place, fmt::format("expected {}, found {}", expected, found)),
          At(place, 0)};
}

Status Truncated(const Place& place, std::string_view what, uint64_t expected, uint64_t found) {
  return {Code::kDataLoss, Text(place, CutText(what, expected, found)), At(place, expected)};
}

Status AboveLimit(const Place& place, std::string_view what, uint64_t declared, uint64_t limit) {
  return {
      Code::kDataLoss,
      Text(place, fmt::format("{} says {}, which is above the limit of {}", what, declared, limit)),
      At(place, 0)};
}

Status Refused(const Place& place, std::string_view what) {
  return {Code::kUnimplemented, Text(place, what), At(place, 0)};
}

Status CutTail(bool drop, const Place& place, std::string_view what, uint64_t expected,
               uint64_t found, ScanReport* report) {
  if (!drop) return Truncated(place, what, expected, found);
  report->Note(place.offset, CutText(what, expected, found) + ", left out");
  return {};
}

}  // namespace forebay::format
