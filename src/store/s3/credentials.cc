#include "store/s3/credentials.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace forebay::store::s3 {
namespace {

using Section = std::map<std::string, std::string, std::less<>>;
using IniFile = std::map<std::string, Section, std::less<>>;

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The dialect of the AWS tools: "[section]", "key = value", whole-line comments with # or ;, a
// comment after blank + # too, nested settings indented below a key ("s3 =" then "  name = value",
// kept here as "s3.name").
IniFile ParseIni(std::string_view text) {
  IniFile file;
  Section* section = nullptr;
  std::string parent;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const bool indented = !line.empty() && (line.front() == ' ' || line.front() == '\t');
    for (size_t i = 1; i < line.size(); ++i) {
      const bool mark = line[i] == '#' || line[i] == ';';
      if (mark && (line[i - 1] == ' ' || line[i - 1] == '\t')) line = line.substr(0, i);
    }
    line = Trim(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      std::string_view name = Trim(line.substr(1, line.find(']') - 1));
      if (name.starts_with("profile ")) name = Trim(name.substr(8));
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
        name = name.substr(1, name.size() - 2);
      }
      section = &file[std::string(name)];
      parent.clear();
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == line.npos || section == nullptr) continue;
    const std::string key(Trim(line.substr(0, equals)));
    const std::string value(Trim(line.substr(equals + 1)));
    if (indented && !parent.empty()) {
      (*section)[parent + "." + key] = value;
    } else {
      (*section)[key] = value;
      parent = value.empty() ? key : "";
    }
  }
  return file;
}

struct Profile {
  std::string name;
  std::string credentials_path;
  std::string config_path;
  Section credentials;
  Section config;
  bool found = false;

  std::string Get(std::string_view key) const {
    for (const Section* section : {&credentials, &config}) {
      const auto found_key = section->find(key);
      if (found_key != section->end() && !found_key->second.empty()) return found_key->second;
    }
    return "";
  }
};

std::string Variable(const Environment& environment, const std::string& name) {
  return environment.variable(name).value_or("");
}

std::string FirstOf(std::initializer_list<std::string> candidates) {
  for (const std::string& candidate : candidates) {
    if (!candidate.empty()) return candidate;
  }
  return "";
}

Profile LoadProfile(const std::string& name, const Environment& environment) {
  const std::string home = Variable(environment, "HOME");
  const auto expand = [&home](std::string path) {
    return path.starts_with("~/") ? home + path.substr(1) : path;
  };
  Profile profile{.name = name};
  profile.credentials_path =
      expand(FirstOf({Variable(environment, "AWS_SHARED_CREDENTIALS_FILE"), "~/.aws/credentials"}));
  profile.config_path =
      expand(FirstOf({Variable(environment, "AWS_CONFIG_FILE"), "~/.aws/config"}));
  const auto load = [&](const std::string& path, Section& into) {
    const std::optional<std::string> text = environment.file(path);
    if (!text) return;
    IniFile file = ParseIni(*text);
    const auto section = file.find(name);
    if (section == file.end()) return;
    into = std::move(section->second);
    profile.found = true;
  };
  load(profile.credentials_path, profile.credentials);
  load(profile.config_path, profile.config);
  return profile;
}

// Both or neither: half a pair is a mistake worth a word.
Status CheckPair(const std::string& id, const std::string& secret, std::string_view where) {
  if (id.empty() == secret.empty()) return {};
  return Status(Code::kPermissionDenied,
                fmt::format("credentials from {} lack the {}", where,
                            id.empty() ? "access key id" : "secret access key"));
}

Result<Credentials> FindCredentials(const StoreOptions& options, const Profile& profile,
                                    bool explicit_profile, const Environment& environment) {
  if (options.no_sign_request) return Credentials{.anonymous = true};
  std::string tried;
  if (!explicit_profile) {
    Credentials found{.access_key_id = Variable(environment, "AWS_ACCESS_KEY_ID"),
                      .secret_access_key = Variable(environment, "AWS_SECRET_ACCESS_KEY"),
                      .session_token = Variable(environment, "AWS_SESSION_TOKEN")};
    FB_RETURN_IF_ERROR(CheckPair(found.access_key_id, found.secret_access_key, "the environment"));
    if (!found.access_key_id.empty()) return found;
    tried = "AWS_ACCESS_KEY_ID in the environment, ";
  }
  Credentials found{.access_key_id = profile.Get("aws_access_key_id"),
                    .secret_access_key = profile.Get("aws_secret_access_key"),
                    .session_token = profile.Get("aws_session_token")};
  FB_RETURN_IF_ERROR(CheckPair(found.access_key_id, found.secret_access_key,
                               fmt::format("profile '{}'", profile.name)));
  if (!found.access_key_id.empty()) return found;
  return Status(Code::kPermissionDenied,
                fmt::format("no credentials found; tried {}profile '{}' in {} and {}; for public "
                            "buckets ask for unsigned requests",
                            tried, profile.name, profile.credentials_path, profile.config_path));
}

int ParseAttempts(const std::string& text) {
  int attempts = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), attempts);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && attempts > 0 ? attempts : 5;
}

}  // namespace

Environment Environment::Process() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr) return std::nullopt;
            return value;
          },
          .file = [](const std::string& path) -> std::optional<std::string> {
            std::ifstream in(path, std::ios::binary);
            if (!in) return std::nullopt;
            return std::string(std::istreambuf_iterator<char>(in), {});
          }};
}

Result<AwsConfig> LoadAwsConfig(const StoreOptions& options, const Environment& environment) {
  const std::string named = FirstOf({options.profile, Variable(environment, "AWS_PROFILE")});
  const Profile profile = LoadProfile(FirstOf({named, "default"}), environment);
  if (!named.empty() && !profile.found && !options.no_sign_request) {
    return Status(Code::kPermissionDenied,
                  fmt::format("there is no profile '{}' in {} or {}", named,
                              profile.credentials_path, profile.config_path));
  }
  AwsConfig config;
  // A profile given as an option outranks the environment's keys; AWS_PROFILE alone does not.
  FB_ASSIGN_OR_RETURN(config.credentials,
                      FindCredentials(options, profile, !options.profile.empty(), environment));
  config.region =
      FirstOf({options.region, Variable(environment, "AWS_REGION"),
               Variable(environment, "AWS_DEFAULT_REGION"), profile.Get("region"), "us-east-1"});
  config.endpoint_url = FirstOf({options.endpoint_url, Variable(environment, "AWS_ENDPOINT_URL_S3"),
                                 Variable(environment, "AWS_ENDPOINT_URL"),
                                 profile.Get("s3.endpoint_url"), profile.Get("endpoint_url")});
  config.ca_bundle = FirstOf(
      {options.ca_bundle, Variable(environment, "AWS_CA_BUNDLE"), profile.Get("ca_bundle")});
  config.addressing_style = options.addressing_style;
  if (config.addressing_style == "auto") {
    const std::string style = profile.Get("s3.addressing_style");
    if (style == "path" || style == "virtual") config.addressing_style = style;
  }
  config.max_attempts = options.max_attempts > 0
                            ? options.max_attempts
                            : ParseAttempts(FirstOf({Variable(environment, "AWS_MAX_ATTEMPTS"),
                                                     profile.Get("max_attempts")}));
  return config;
}

}  // namespace forebay::store::s3
