#include "engine/pack_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "format/output_record.h"

namespace forebay::engine {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

std::string TypeOf(const std::string& name) {
  if (name == "int") return "int64";
  return name == "float" ? "float32" : name;
}

template <class T>
Result<std::string> Number(std::string_view text, std::string_view dtype) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Bad(fmt::format("'{}' is no {}", text.substr(0, 40), dtype));
  }
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

PackField* Find(PackSample& sample, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::ranges::find(sample.fields, name, &PackField::name);
    if (found != sample.fields.end()) return &*found;
  }
  return nullptr;
}

std::string NamesOf(const PackSample& sample) {
  std::string names;
  for (const PackField& field : sample.fields) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

}  // namespace

bool IsLabelField(std::string_view name) {
  return name == "label" || name == "labels" || name == "cls" || name == "class";
}

std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsClassField(std::string_view name) {
  constexpr std::string_view kNames[] = {"cls", "cls2", "class", "count", "index", "inx", "id"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

Result<std::string> NumberFromText(std::string_view text, std::string_view dtype) {
  text = Trimmed(text);
  if (dtype == "int64") return Number<int64_t>(text, dtype);
  if (dtype == "int32") return Number<int32_t>(text, dtype);
  if (dtype == "int16") return Number<int16_t>(text, dtype);
  if (dtype == "int8") return Number<int8_t>(text, dtype);
  if (dtype == "uint64") return Number<uint64_t>(text, dtype);
  if (dtype == "uint32") return Number<uint32_t>(text, dtype);
  if (dtype == "uint16") return Number<uint16_t>(text, dtype);
  if (dtype == "uint8") return Number<uint8_t>(text, dtype);
  if (dtype == "float32") return Number<float>(text, dtype);
  if (dtype == "float64") return Number<double>(text, dtype);
  return Bad(fmt::format("text cannot become {}", dtype));
}

Result<PackColumns> PackColumns::Make(const PackOptions& options) {
  PackColumns columns;
  columns.mds_ = options.to == "mds";
  columns.infers_ = options.to == "mds" || options.to == "tfrecord" || options.to == "parquet";
  columns.folder_labels_ = options.labels == "folder";
  columns.keys_ = options.keys;
  for (const std::string& text : options.columns) {
    FB_ASSIGN_OR_RETURN(Column column, Parse(text));
    if (!columns.mds_ && !column.type.empty() && column.type != "bytes" &&
        format::BytesOfType(TypeOf(column.type)) == 0) {
      return Bad(
          fmt::format("column '{}': '{}' is no type of numbers, nor 'bytes'", text, column.type));
    }
    if (std::ranges::find(columns.columns_, column.name, &Column::name) != columns.columns_.end()) {
      return Bad(fmt::format("column '{}' is asked for twice", column.name));
    }
    columns.columns_.push_back(std::move(column));
  }
  return columns;
}

Result<PackColumns::Column> PackColumns::Parse(const std::string& text) {
  Column column;
  const size_t colon = std::min(text.find(':'), text.size());
  if (colon < text.size()) column.type = text.substr(colon + 1);
  std::string_view names = std::string_view(text).substr(0, colon);
  const size_t equals = names.find('=');
  column.name = names.substr(0, equals);
  if (equals != std::string_view::npos) names.remove_prefix(equals + 1);
  while (!names.empty()) {
    const size_t end = std::min(names.find('|'), names.size());
    column.of.emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  const bool whole = !column.name.empty() && !column.of.empty() &&
                     std::ranges::find(column.of, "") == column.of.end() &&
                     (colon == text.size() || !column.type.empty());
  if (!whole) {
    return Bad(fmt::format("column '{}': NAME, NAME=A|B|C, and either with :TYPE behind", text));
  }
  return column;
}

void PackColumns::SeeFolder(const PackSample& sample) {
  if (folder_labels_) seen_.insert(sample.key.substr(0, sample.key.find('/')));
}

void PackColumns::CloseFolders() { folders_.assign(seen_.begin(), seen_.end()); }

Status PackColumns::AddLabel(PackSample* sample) const {
  const size_t slash = sample->key.find('/');
  if (slash == std::string::npos) {
    return Bad(fmt::format("sample '{}' lies in no folder that could be its label", sample->key));
  }
  const auto folder = std::ranges::lower_bound(folders_, sample->key.substr(0, slash));
  const int64_t number = folder - folders_.begin();
  PackField field{.name = "cls", .bytes = sizeof number, .dtype = "int64"};
  field.literal = std::string(reinterpret_cast<const char*>(&number), sizeof number);
  if (Find(*sample, {"cls"}) != nullptr) {
    return Bad(fmt::format("sample '{}' has a field 'cls' already", sample->key));
  }
  sample->fields.push_back(std::move(field));
  return {};
}

Status PackColumns::SetType(const std::string& type, PackField* field) const {
  if (type.empty() || type == "bytes") {
    if (mds_ || type == "bytes") field->encoding = type;
    return {};
  }
  const std::string dtype = TypeOf(type);
  const uint64_t bytes = format::BytesOfType(dtype);
  if (bytes == 0) {  // of MDS alone
    field->encoding = type;
    return {};
  }
  if (mds_) field->encoding = type;
  if (field->dtype == dtype) return {};
  if (!field->dtype.empty()) {
    return Bad(fmt::format("field '{}' is of {}, not of {}", field->name, field->dtype, dtype));
  }
  field->from_text = true;
  field->dtype = dtype;
  field->shape.clear();
  return {};
}

void PackColumns::InferType(PackField* field) const {
  if (!infers_ || !field->dtype.empty() || !IsClassField(field->name)) return;
  field->from_text = true;
  field->dtype = "int64";
}

Status PackColumns::Select(PackSample* sample) const {
  if (folder_labels_) FB_RETURN_IF_ERROR(AddLabel(sample));
  if (keys_ == "number") sample->key.clear();
  if (keys_ == "source" && sample->key.empty()) return Bad("it has no key");
  if (columns_.empty()) {
    for (PackField& field : sample->fields) InferType(&field);
    return {};
  }
  std::vector<PackField> fields;
  for (const Column& column : columns_) {
    const PackField* found = Find(*sample, column.of);
    if (found == nullptr) {
      return Bad(fmt::format("it has no field '{}'; it has {}", column.of[0], NamesOf(*sample)));
    }
    PackField field = *found;
    field.origin = std::exchange(field.name, column.name);
    FB_RETURN_IF_ERROR(SetType(column.type, &field));
    if (column.type.empty()) InferType(&field);
    fields.push_back(std::move(field));
  }
  sample->fields = std::move(fields);
  return {};
}

}  // namespace forebay::engine
