#include "store/s3/credentials.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "store/s3/credentials/profile.h"
#include "store/s3/credentials/spec.h"
#include "sys/process.h"
#include "sys/small_file.h"

namespace forebay::store::s3 {
namespace {

constexpr size_t kFileMost = 4 << 20;  // of a profile or a token
constexpr int kAttempts = 5;

std::string FirstOf(std::initializer_list<std::string> candidates) {
  for (const std::string& candidate : candidates) {
    if (!candidate.empty()) return candidate;
  }
  return "";
}

int AttemptsOf(const StoreOptions& options, const std::string& text) {
  if (options.max_attempts > 0) return options.max_attempts;
  if (text.empty()) return kAttempts;
  int attempts = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), attempts);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (whole && attempts > 0) return attempts;
  Log(LogLevel::kWarn,
      fmt::format("AWS_MAX_ATTEMPTS (max_attempts) is '{}', no number of at least 1: ignored, {} "
                  "attempts are made",
                  text, kAttempts));
  return kAttempts;
}

// As a part of a host's name; stores that are not AWS have other words too.
Status CheckRegion(const std::string& region, bool of_aws) {
  const bool word = std::ranges::all_of(region, [&](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || (!of_aws && (c == '_' || c == '.'));
  });
  if (word && region.size() <= 63 && !region.starts_with('-') && !region.ends_with('-')) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("'{}' is no region, as us-east-1 is: --region, AWS_REGION, "
                            "AWS_DEFAULT_REGION or the profile's says so",
                            region));
}

// A file that a variable names is meant: without it other keys would be used, or none.
Status CheckNamedFiles(const Environment& environment) {
  if (!environment.check_file) return {};
  for (const char* variable : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
    const std::string path = environment.Text(variable);
    if (path.empty()) continue;
    FB_RETURN_IF_ERROR(environment.check_file(ExpandHome(path, environment)).WithContext(variable));
  }
  return {};
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// A word out of a list; else what it is when nobody says anything, with a warning.
std::string OneOf(const char* name, const std::string& text,
                  std::initializer_list<std::string_view> words, std::string otherwise) {
  if (text.empty()) return otherwise;
  std::string lower = Lower(text);
  if (std::ranges::find(words, lower) != words.end()) return lower;
  Log(LogLevel::kWarn, fmt::format("{} is '{}', which means nothing here: ignored", name, text));
  return otherwise;
}

// Variables in which the processes of one job differ, and those of a terminal: they do not decide
// whose keys a program gives.
bool IsOfOneRank(std::string_view variable) {
  static constexpr std::string_view kBegins[] = {
      "RANK=",  "LOCAL_RANK=", "GROUP_RANK=", "ROLE_RANK=", "NODE_RANK=", "TORCHELASTIC_",
      "OMPI_",  "PMI_",        "PMIX_",       "PRTE_",      "MPI_",       "MV2_",
      "I_MPI_", "PALS_",       "SLURM_",      "HYDRA_",     "JSM_",       "RAY_",
      "CUDA_",  "NCCL_",       "OMP_",        "MASTER_",    "PWD=",       "OLDPWD=",
      "SHLVL=", "_=",          "TERM",        "COLUMNS=",   "LINES=",     "WINDOWID=",
      "SSH_",   "TMUX",        "FOREBAY_",    "PYTEST_",    "HOSTNAME="};
  return std::ranges::any_of(kBegins,
                             [&](std::string_view begin) { return variable.starts_with(begin); });
}

std::string EndpointOf(const StoreOptions& options, const Environment& environment,
                       const Profiles& profiles, const std::string& profile) {
  if (!options.endpoint_url.empty()) return options.endpoint_url;
  std::string configured = ConfiguredEndpoint("s3", environment, profiles, profile);
  if (!configured.empty()) return configured;
  if (environment.IsTrue("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) return "";
  const std::string other = environment.Text("S3_ENDPOINT_URL");
  if (!other.empty()) {
    Log(LogLevel::kWarn,
        "the endpoint is taken from S3_ENDPOINT_URL; AWS_ENDPOINT_URL_S3 is the "
        "name that all AWS tools know");
  }
  return other;
}

// The settings that concern requests alone.
void ReadRequestSettings(const Environment& environment, const Profiles& profiles,
                         const std::string& profile, AwsConfig& config) {
  const auto text = [&](const char* variable, const char* key) {
    return FirstOf({environment.Text(variable), profiles.Get(profile, key)});
  };
  const auto flag = [&](const char* variable, const char* key) {
    return Lower(text(variable, key)) == "true";
  };
  config.retry_mode = OneOf("AWS_RETRY_MODE", text("AWS_RETRY_MODE", "retry_mode"),
                            {"legacy", "standard", "adaptive"}, "standard");
  config.use_dualstack = flag("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint") ||
                         Lower(profiles.Get(profile, "s3.use_dualstack_endpoint")) == "true";
  config.use_fips = flag("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint");
  config.use_accelerate = Lower(profiles.Get(profile, "s3.use_accelerate_endpoint")) == "true";
  config.request_checksum =
      OneOf("AWS_REQUEST_CHECKSUM_CALCULATION",
            text("AWS_REQUEST_CHECKSUM_CALCULATION", "request_checksum_calculation"),
            {"when_supported", "when_required"}, "");
  config.response_checksum =
      OneOf("AWS_RESPONSE_CHECKSUM_VALIDATION",
            text("AWS_RESPONSE_CHECKSUM_VALIDATION", "response_checksum_validation"),
            {"when_supported", "when_required"}, "");
}

}  // namespace

bool Environment::IsTrue(const std::string& name) const { return Lower(Text(name)) == "true"; }

Environment Environment::Process() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr) return std::nullopt;
            return value;
          },
          .file = [](const std::string& path) -> std::optional<std::string> {
            Result<std::optional<std::string>> text = sys::ReadSmallFile(path, kFileMost);
            if (text.ok()) return *std::move(text);
            Log(LogLevel::kWarn, "passed over: " + text.status().ToString());
            return std::nullopt;
          },
          .check_file =
              [](const std::string& path) { return sys::ReadSmallFile(path, kFileMost).status(); },
          .surroundings =
              [] {
                std::string text = sys::CurrentFolder();
                for (const std::string& one : sys::EnvironmentStrings()) {
                  if (!IsOfOneRank(one)) text += "\n" + one;
                }
                return text;
              }};
}

std::string ConfiguredEndpoint(const std::string& service, const Environment& environment,
                               const Profiles& profiles, const std::string& profile) {
  if (environment.IsTrue("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
      Lower(profiles.Get(profile, "ignore_configured_endpoint_urls")) == "true") {
    return "";
  }
  std::string variable = "AWS_ENDPOINT_URL_" + service;
  for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string services = profiles.Get(profile, "services");
  return FirstOf({environment.Text(variable), environment.Text("AWS_ENDPOINT_URL"),
                  profiles.InSection("services", services, service + ".endpoint_url"),
                  profiles.Get(profile, service + ".endpoint_url"),
                  profiles.Get(profile, "endpoint_url")});
}

Result<AwsConfig> LoadAwsConfig(const StoreOptions& options, const Environment& environment) {
  FB_RETURN_IF_ERROR(CheckNamedFiles(environment));
  const Profiles profiles = Profiles::Load(environment);
  const std::string named = FirstOf(
      {options.profile, environment.Text("AWS_PROFILE"), environment.Text("AWS_DEFAULT_PROFILE")});
  const std::string profile = FirstOf({named, "default"});
  if (!named.empty() && !profiles.Has(profile) && !options.no_sign_request) {
    return Status(Code::kPermissionDenied,
                  fmt::format("there is no profile '{}' in {} or {}", named,
                              profiles.credentials_path(), profiles.config_path()));
  }
  AwsConfig config;
  config.region = FirstOf({options.region, environment.Text("AWS_REGION"),
                           environment.Text("AWS_DEFAULT_REGION"), profiles.Get(profile, "region"),
                           "us-east-1"});
  config.endpoint_url = EndpointOf(options, environment, profiles, profile);
  FB_RETURN_IF_ERROR(CheckRegion(config.region, config.endpoint_url.empty()));
  config.ca_bundle = FirstOf(
      {options.ca_bundle, environment.Text("AWS_CA_BUNDLE"), profiles.Get(profile, "ca_bundle")});
  config.addressing_style = options.addressing_style;
  if (config.addressing_style == "auto") {
    const std::string style = profiles.Get(profile, "s3.addressing_style");
    if (style == "path" || style == "virtual") config.addressing_style = style;
  }
  config.max_attempts = AttemptsOf(options, FirstOf({environment.Text("AWS_MAX_ATTEMPTS"),
                                                     profiles.Get(profile, "max_attempts")}));
  ReadRequestSettings(environment, profiles, profile, config);
  FB_ASSIGN_OR_RETURN(CredentialSpec spec, ChooseCredentials({.options = options,
                                                              .environment = environment,
                                                              .profiles = profiles,
                                                              .profile = profile,
                                                              .region = config.region}));
  if (spec.kind == CredentialSpec::Kind::kFixed) {
    config.credentials = std::move(spec.fixed);
  } else {
    config.fetched_by = std::make_shared<CredentialSpec>(std::move(spec));
  }
  return config;
}

}  // namespace forebay::store::s3
