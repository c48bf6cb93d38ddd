#include "format/mds_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "format/mds_writer.h"

namespace forebay::format {
namespace {

using nlohmann::json;

constexpr size_t kMaxColumns = 10'000;

const json* Find(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

Status Missing(const Place& place, std::string_view what) {
  return Damaged(place, what, "none in the JSON text");
}

Result<json> Parse(std::string_view text, const Place& place) {
  json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) {
    return Damaged(place, "a JSON object", "another text");
  }
  return parsed;
}

Result<std::string> TextAt(const json& object, const char* key, const Place& place) {
  const json* found = Find(object, key);
  if (found == nullptr || !found->is_string()) return Missing(place, fmt::format("text '{}'", key));
  return found->get<std::string>();
}

Result<uint64_t> NumberAt(const json& object, const char* key, const Place& place) {
  const json* found = Find(object, key);
  if (found == nullptr || !found->is_number_unsigned()) {
    return Missing(place, fmt::format("number '{}'", key));
  }
  return found->get<uint64_t>();
}

Status CheckFormat(const json& object, const Place& place) {
  FB_ASSIGN_OR_RETURN(const std::string format, TextAt(object, "format", place));
  if (format != "mds") {
    return Refused(place, fmt::format("shards of format '{}' in an MDS index", format));
  }
  FB_ASSIGN_OR_RETURN(const uint64_t version, NumberAt(object, "version", place));
  if (version != 2) return Refused(place, fmt::format("version {} of MDS", version));
  return {};
}

Result<std::vector<MdsColumn>> Columns(const json& object, const Place& place) {
  const json* names = Find(object, "column_names");
  const json* encodings = Find(object, "column_encodings");
  const json* sizes = Find(object, "column_sizes");
  for (const json* list : {names, encodings, sizes}) {
    if (list == nullptr || !list->is_array() || list->size() != names->size()) {
      return Missing(place, "names, encodings and sizes of as many columns");
    }
  }
  if (names->size() > kMaxColumns) {
    return AboveLimit(place, "the count of columns", names->size(), kMaxColumns);
  }
  std::vector<MdsColumn> columns;
  for (size_t i = 0; i < names->size(); ++i) {
    const json& size = (*sizes)[i];
    if (!(*names)[i].is_string() || !(*encodings)[i].is_string() ||
        !(size.is_null() || size.is_number_unsigned())) {
      return Missing(place, "a column's name, encoding and size");
    }
    MdsColumn column{(*names)[i].get<std::string>(), (*encodings)[i].get<std::string>()};
    for (const MdsColumn& other : columns) {
      if (other.name == column.name) {
        return Damaged(place, "each column once", fmt::format("'{}' twice", column.name));
      }
    }
    // A size of 0 is read as none, as MosaicML's reader does.
    if (!size.is_null() && size.get<uint64_t>() != 0) column.bytes = size.get<uint64_t>();
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<MdsFile> File(const json& object, const Place& place) {
  MdsFile file;
  FB_ASSIGN_OR_RETURN(file.name, TextAt(object, "basename", place));
  if (file.name.empty() || file.name == "." || file.name == ".." ||
      file.name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    return Damaged(place, "the name of a file in the index's folder", "a path");
  }
  FB_ASSIGN_OR_RETURN(file.bytes, NumberAt(object, "bytes", place));
  const json* hashes = Find(object, "hashes");
  if (hashes == nullptr || !hashes->is_object()) return file;
  for (const auto& [algorithm, hash] : hashes->items()) {
    if (!hash.is_string()) return Missing(place, "a hash as text");
    file.hashes.emplace_back(algorithm, hash.get<std::string>());
  }
  return file;
}

Result<MdsShard> ShardOf(const json& object, const Place& place) {
  FB_RETURN_IF_ERROR(CheckFormat(object, place));
  MdsShard shard;
  FB_ASSIGN_OR_RETURN(shard.columns, Columns(object, place));
  FB_ASSIGN_OR_RETURN(shard.samples, NumberAt(object, "samples", place));
  const json* raw = Find(object, "raw_data");
  if (raw == nullptr) return Missing(place, "'raw_data'");
  FB_ASSIGN_OR_RETURN(shard.raw, File(*raw, place));
  const json* zip = Find(object, "zip_data");
  if (zip != nullptr && !zip->is_null()) {
    FB_ASSIGN_OR_RETURN(shard.zip, File(*zip, place));
  }
  const json* compression = Find(object, "compression");
  if (compression != nullptr && compression->is_string()) {
    shard.compression = compression->get<std::string>();
  }
  return shard;
}

json Config(const std::vector<MdsColumn>& columns) {
  json config = {{"column_encodings", json::array()},
                 {"column_names", json::array()},
                 {"column_sizes", json::array()},
                 {"compression", nullptr},
                 {"format", "mds"},
                 {"hashes", json::array()},
                 {"size_limit", nullptr},
                 {"version", 2}};
  for (const MdsColumn& column : columns) {
    config["column_names"].push_back(column.name);
    config["column_encodings"].push_back(column.encoding);
    config["column_sizes"].push_back(column.bytes ? json(*column.bytes) : json(nullptr));
  }
  return config;
}

std::string TextOf(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

std::string MdsConfigText(const std::vector<MdsColumn>& columns) { return TextOf(Config(columns)); }

std::string MdsIndexText(const std::vector<MdsColumn>& columns,
                         const std::vector<MdsShard>& shards) {
  json list = json::array();
  for (const MdsShard& shard : shards) {
    json entry = Config(columns);
    json hashes = json::object();
    for (const auto& [algorithm, hash] : shard.raw.hashes) {
      entry["hashes"].push_back(algorithm);
      hashes[algorithm] = hash;
    }
    entry["raw_data"] = {
        {"basename", shard.raw.name}, {"bytes", shard.raw.bytes}, {"hashes", hashes}};
    entry["samples"] = shard.samples;
    entry["zip_data"] = nullptr;
    list.push_back(std::move(entry));
  }
  return TextOf({{"shards", std::move(list)}, {"version", 2}});
}

Result<std::vector<MdsColumn>> ParseMdsConfig(std::string_view text, const Place& place) {
  FB_ASSIGN_OR_RETURN(const json object, Parse(text, place));
  FB_RETURN_IF_ERROR(CheckFormat(object, place));
  return Columns(object, place);
}

Result<std::vector<MdsShard>> ParseMdsIndex(std::string_view text, const Place& place) {
  if (text.size() > kMaxMdsIndexBytes) {
    return AboveLimit(place, "the index's size", text.size(), kMaxMdsIndexBytes);
  }
  FB_ASSIGN_OR_RETURN(const json object, Parse(text, place));
  const json* list = Find(object, "shards");
  if (list == nullptr || !list->is_array()) return Missing(place, "a list 'shards'");
  std::vector<MdsShard> shards;
  for (const json& entry : *list) {
    auto shard = ShardOf(entry, place);
    if (!shard.ok()) {
      return std::move(shard).status().WithContext(fmt::format("shard {}", shards.size()));
    }
    shards.push_back(*std::move(shard));
  }
  return shards;
}

}  // namespace forebay::format
