#include "store/s3/credentials/profile.h"

#include <fmt/core.h>

#include "store/s3/credentials.h"

namespace forebay::store::s3 {
namespace {

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.front() == text.back();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// What stands between the brackets; "kind name" keeps its kind unless that is "profile".
std::string SectionName(std::string_view line) {
  const std::string_view name = Trim(line.substr(1, line.find(']') - 1));
  const size_t blank = name.find_first_of(" \t");
  if (blank == name.npos) return std::string(Unquoted(name));
  const std::string_view kind = name.substr(0, blank);
  const std::string_view rest = Unquoted(Trim(name.substr(blank)));
  if (kind == "profile") return std::string(rest);
  if (kind == "sso-session" || kind == "services") return fmt::format("{} {}", kind, rest);
  return std::string(Unquoted(name));
}

std::string_view WithoutComment(std::string_view line) {
  for (size_t i = 1; i < line.size(); ++i) {
    const bool mark = line[i] == '#' || line[i] == ';';
    if (mark && (line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

std::string Find(const IniFile& file, std::string_view section, std::string_view key) {
  const auto found = file.find(section);
  if (found == file.end()) return "";
  const auto value = found->second.find(key);
  return value == found->second.end() ? "" : value->second;
}

}  // namespace

IniFile ParseIni(std::string_view text) {
  IniFile file;
  IniSection* section = nullptr;
  std::string parent;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const bool indented = !line.empty() && (line.front() == ' ' || line.front() == '\t');
    line = Trim(WithoutComment(line));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      section = &file[SectionName(line)];
      parent.clear();
      continue;
    }
    // Python's configparser, and so botocore, takes either mark and keys of either case.
    const size_t equals = line.find_first_of("=:");
    if (equals == line.npos || section == nullptr) continue;
    const std::string key = Lower(Trim(line.substr(0, equals)));
    const std::string value(Trim(line.substr(equals + 1)));
    if (indented && !parent.empty()) {
      (*section)[fmt::format("{}.{}", parent, key)] = value;
    } else {
      (*section)[key] = value;
      parent = value.empty() ? key : "";
    }
  }
  return file;
}

std::string ExpandHome(const std::string& path, const Environment& environment) {
  return path.starts_with("~/") ? environment.Text("HOME") + path.substr(1) : path;
}

Profiles Profiles::Load(const Environment& environment) {
  const auto path_of = [&](const std::string& variable, const std::string& otherwise) {
    const std::string told = environment.Text(variable);
    return ExpandHome(told.empty() ? otherwise : told, environment);
  };
  Profiles profiles;
  profiles.credentials_path_ = path_of("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
  profiles.config_path_ = path_of("AWS_CONFIG_FILE", "~/.aws/config");
  profiles.credentials_ = ParseIni(environment.file(profiles.credentials_path_).value_or(""));
  profiles.config_ = ParseIni(environment.file(profiles.config_path_).value_or(""));
  return profiles;
}

bool Profiles::Has(std::string_view profile) const {
  return credentials_.contains(profile) || config_.contains(profile);
}

std::string Profiles::InCredentials(std::string_view profile, std::string_view key) const {
  return Find(credentials_, profile, key);
}

std::string Profiles::InConfig(std::string_view profile, std::string_view key) const {
  return Find(config_, profile, key);
}

std::string Profiles::Get(std::string_view profile, std::string_view key) const {
  std::string value = InCredentials(profile, key);
  return value.empty() ? InConfig(profile, key) : value;
}

std::string Profiles::InSection(std::string_view kind, std::string_view name,
                                std::string_view key) const {
  return Find(config_, fmt::format("{} {}", kind, name), key);
}

}  // namespace forebay::store::s3
