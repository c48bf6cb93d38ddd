#include "store/s3/credentials/flat_json.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>

namespace forebay::store::s3 {
namespace {

constexpr int kMaxDepth = 8;

void Flatten(const nlohmann::json& object, const std::string& prefix, int depth, FlatJson& into) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) {
      into[prefix + name] = value.get<std::string>();
    } else if (value.is_object() && depth < kMaxDepth) {
      Flatten(value, prefix + name + ".", depth + 1, into);
    } else if (value.is_number() || value.is_boolean()) {
      into[prefix + name] = value.dump();
    }
  }
}

}  // namespace

Result<FlatJson> ParseFlatJson(std::string_view text) {
  const auto parsed = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!parsed.is_object()) return Status(Code::kDataLoss, "it is no JSON object");
  FlatJson values;
  Flatten(parsed, "", 0, values);
  return values;
}

std::string WriteFlatJson(const FlatJson& values) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string TextOf(const FlatJson& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

int64_t NumberOf(const FlatJson& values, std::string_view name) {
  const std::string text = TextOf(values, name);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? number : 0;
}

int64_t ParseUtcTime(std::string_view text) {
  const std::string whole(text);
  std::tm utc{};
  const char* rest = ::strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return 0;
  if (*rest == '.') {
    do {
      ++rest;
    } while (*rest >= '0' && *rest <= '9');
  }
  const std::string zone(rest);
  int64_t offset_s = 0;
  const bool digits = zone.size() == 6 && zone.find_first_not_of("0123456789:", 1) == zone.npos;
  if (digits && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
    const auto two = [&zone](size_t at) { return (zone[at] - '0') * 10 + (zone[at + 1] - '0'); };
    offset_s = (two(1) * 60 + two(4)) * 60 * (zone[0] == '+' ? 1 : -1);
  } else if (zone != "Z" && zone != "UTC" && !zone.empty()) {
    return 0;
  }
  return std::max<int64_t>(0, ::timegm(&utc) - offset_s);
}

std::string FormatUtcTime(int64_t unix_time_s) {
  const time_t seconds = unix_time_s;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text, size};
}

}  // namespace forebay::store::s3
