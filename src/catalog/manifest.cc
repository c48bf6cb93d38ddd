#include "catalog/manifest.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace forebay::catalog {
namespace {

using Json = nlohmann::json;

constexpr std::pair<std::string_view, DataType> kNames[] = {
    {"", DataType::kFolder},
    {"S3Prefix", DataType::kPrefix},
    {"ManifestFile", DataType::kManifest},
    {"AugmentedManifestFile", DataType::kAugmentedManifest},
};

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Json Parse(std::string_view text) { return Json::parse(text.begin(), text.end(), nullptr, false); }

// [{"prefix": "s3://bucket/some/prefix/"}, "relative/1", ...]: each is put behind the prefix as it
// is.
Result<std::vector<std::string>> ReadList(std::string_view text) {
  const Json list = Parse(text);
  if (list.is_discarded()) return Bad("the manifest is no JSON");
  const bool headed = list.is_array() && !list.empty() && list[0].is_object();
  const auto prefix = headed ? list[0].find("prefix") : Json::const_iterator();
  if (!headed || prefix == list[0].end() || !prefix->is_string()) {
    return Bad(R"(the manifest does not begin with [{"prefix": "s3://..."}, ...)");
  }
  std::vector<std::string> uris;
  for (size_t i = 1; i < list.size(); ++i) {
    if (!list[i].is_string()) return Bad(fmt::format("entry {} of the manifest is no key", i));
    uris.push_back(prefix->get<std::string>() + list[i].get<std::string>());
  }
  return uris;
}

Result<std::vector<std::string>> ReadLines(std::string_view text) {
  std::vector<std::string> uris;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const Json row = Parse(line);
    if (!row.is_object()) {
      return Bad(fmt::format("line {} of the augmented manifest is no JSON object", number));
    }
    const auto uri = row.find("source-ref");
    if (uri == row.end() || !uri->is_string()) {
      return Bad(fmt::format("line {} of the augmented manifest has no \"source-ref\"{}", number,
                             row.contains("source") ? ": text in \"source\" is no object" : ""));
    }
    uris.push_back(uri->get<std::string>());
  }
  return uris;
}

}  // namespace

Result<DataType> ParseDataType(std::string_view name) {
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  return Bad(
      fmt::format("S3 data type '{}': S3Prefix, ManifestFile or AugmentedManifestFile", name));
}

Result<std::vector<std::string>> ReadManifest(DataType type, std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  auto uris = type == DataType::kManifest ? ReadList(text) : ReadLines(text);
  if (uris.ok() && uris->empty()) return Bad("the manifest names no object");
  return uris;
}

}  // namespace forebay::catalog
