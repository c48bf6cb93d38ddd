// The profile files of the AWS tools, ~/.aws/config and ~/.aws/credentials.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace forebay::store::s3 {

struct Environment;

// "name" -> "value"; a nested setting ("s3 =" and, indented below it, "name = value") as "s3.name".
using IniSection = std::map<std::string, std::string, std::less<>>;
using IniFile = std::map<std::string, IniSection, std::less<>>;

// The dialect of the AWS tools: "[section]", "key = value", whole-line comments with # or ;, a
// comment after blank + # too. "[profile x]" becomes "x", quotes around a name go.
IniFile ParseIni(std::string_view text);

// Both files as one. An empty value counts as none everywhere.
class Profiles {
 public:
  // Reads the files where AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say, or below ~/.aws;
  // one that is missing or cannot be read counts as empty.
  static Profiles Load(const Environment& environment);

  bool Has(std::string_view profile) const;
  // The value in the credentials file, else in the config file, else "".
  std::string Get(std::string_view profile, std::string_view key) const;
  std::string InCredentials(std::string_view profile, std::string_view key) const;
  std::string InConfig(std::string_view profile, std::string_view key) const;
  // Of "[sso-session NAME]" and "[services NAME]".
  std::string InSection(std::string_view kind, std::string_view name, std::string_view key) const;

  const std::string& credentials_path() const { return credentials_path_; }
  const std::string& config_path() const { return config_path_; }

 private:
  std::string credentials_path_;
  std::string config_path_;
  IniFile credentials_;
  IniFile config_;
};

// Where AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services section or its
// endpoint_url say that `service` ("s3", "sts", "sso", "sso_oidc") is; "" when none does or all
// are to be ignored.
std::string ConfiguredEndpoint(const std::string& service, const Environment& environment,
                               const Profiles& profiles, const std::string& profile);

// "~/x" below $HOME; anything else as it is.
std::string ExpandHome(const std::string& path, const Environment& environment);

}  // namespace forebay::store::s3
