#include "store/s3/credentials/spec.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "net/proxy.h"

#include "store/s3/credentials/service_call.h"

namespace forebay::store::s3 {
namespace {

using Kind = CredentialSpec::Kind;
// None: this place says nothing, the next is looked at.
using Found = std::optional<CredentialSpec>;

constexpr char kSessionName[] = "forebay";

Status Wrong(std::string text) { return Status(Code::kPermissionDenied, std::move(text)); }

std::string OneOf(std::string first, std::string second) {
  return first.empty() ? std::move(second) : std::move(first);
}

// The name under which `aws sso login` keeps a session's token.
std::string HexSha1(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// Looks at one place after another. Each method that finds returns none when there is nothing.
class Chooser {
 public:
  explicit Chooser(const SpecRequest& request) : r_(request), p_(request.profiles) {}

  Result<CredentialSpec> Choose();

 private:
  std::string Env(const char* name) const { return r_.environment.Text(name); }
  bool explicit_profile() const { return !r_.options.profile.empty(); }
  // AWS's own endpoint of `service` ("sts") unless one is configured.
  std::string EndpointOf(const std::string& service, const std::string& own) const {
    return OneOf(ConfiguredEndpoint(service, r_.environment, p_, r_.profile), own);
  }
  std::string StsUrl() const;

  Result<Found> FromKeys(const std::string& id, const std::string& secret, std::string token,
                         std::string name) const;
  Result<Found> FromEnvironment() const;
  Result<Found> FromAssumeRole(const std::string& profile);
  Result<Found> FromWebIdentity(const std::string& profile) const;
  Result<Found> FromSso(const std::string& profile) const;
  Result<Found> FromCredentialsFile(const std::string& profile) const;
  Result<Found> FromConfigFile(const std::string& profile) const;
  Found FromProcess(const std::string& profile) const;
  Result<Found> FromContainer() const;
  Found FromMetadata() const;
  // What a profile says without assuming a role.
  Result<Found> FromPlainProfile(const std::string& profile) const;
  Result<CredentialSpec> BaseOf(const std::string& profile, const std::string& role);
  Result<CredentialSpec> FromNamedSource(const std::string& profile, const std::string& source);

  const SpecRequest& r_;
  const Profiles& p_;
  std::vector<std::string> visited_;  // profiles on the way through a chain of roles
};

std::string Chooser::StsUrl() const {
  const char* suffix = r_.region.starts_with("cn-") ? ".cn" : "";
  const bool fips = r_.environment.IsTrue("AWS_USE_FIPS_ENDPOINT");
  // Regional: the global endpoint is one region's, and its tokens are not valid everywhere.
  return EndpointOf("sts", fmt::format("https://sts{}.{}.amazonaws.com{}", fips ? "-fips" : "",
                                       r_.region, suffix));
}

// Both or neither: half a pair is a mistake worth a word.
Result<Found> Chooser::FromKeys(const std::string& id, const std::string& secret, std::string token,
                                std::string name) const {
  if (id.empty() && secret.empty()) return Found();
  if (id.empty() || secret.empty()) {
    return Wrong(fmt::format("credentials from {} lack the {}", name,
                             id.empty() ? "access key id" : "secret access key"));
  }
  return Found(CredentialSpec{
      .kind = Kind::kFixed,
      .name = std::move(name),
      .fixed = {
          .access_key_id = id, .secret_access_key = secret, .session_token = std::move(token)}});
}

Result<Found> Chooser::FromEnvironment() const {
  return FromKeys(Env("AWS_ACCESS_KEY_ID"), Env("AWS_SECRET_ACCESS_KEY"),
                  OneOf(Env("AWS_SESSION_TOKEN"), Env("AWS_SECURITY_TOKEN")), "the environment");
}

Result<Found> Chooser::FromCredentialsFile(const std::string& profile) const {
  return FromKeys(p_.InCredentials(profile, "aws_access_key_id"),
                  p_.InCredentials(profile, "aws_secret_access_key"),
                  p_.InCredentials(profile, "aws_session_token"),
                  fmt::format("profile '{}' in {}", profile, p_.credentials_path()));
}

Result<Found> Chooser::FromConfigFile(const std::string& profile) const {
  return FromKeys(p_.Get(profile, "aws_access_key_id"), p_.Get(profile, "aws_secret_access_key"),
                  p_.Get(profile, "aws_session_token"),
                  fmt::format("profile '{}' in {}", profile, p_.config_path()));
}

Found Chooser::FromProcess(const std::string& profile) const {
  std::string command = p_.Get(profile, "credential_process");
  if (command.empty()) return std::nullopt;
  return CredentialSpec{
      .kind = Kind::kProcess,
      .name = fmt::format("the credential_process of profile '{}'", profile),
      .command = std::move(command),
      .surroundings = r_.environment.surroundings ? r_.environment.surroundings() : ""};
}

Result<Found> Chooser::FromWebIdentity(const std::string& profile) const {
  std::string file = p_.Get(profile, "web_identity_token_file");
  std::string role = p_.Get(profile, "role_arn");
  std::string session = p_.Get(profile, "role_session_name");
  std::string where = fmt::format("profile '{}'", profile);
  if (file.empty() && !explicit_profile() && profile == r_.profile) {
    file = Env("AWS_WEB_IDENTITY_TOKEN_FILE");
    role = Env("AWS_ROLE_ARN");
    session = Env("AWS_ROLE_SESSION_NAME");
    where = "AWS_WEB_IDENTITY_TOKEN_FILE";
  }
  if (file.empty()) return Found();
  if (role.empty()) {
    return Wrong(fmt::format("{} names a token's file but no role: set {}", where,
                             where.starts_with("AWS") ? "AWS_ROLE_ARN" : "role_arn"));
  }
  return Found(CredentialSpec{.kind = Kind::kWebIdentity,
                              .name = fmt::format("{} (role {} for a web identity)", where, role),
                              .url = StsUrl(),
                              .region = r_.region,
                              .token_file = ExpandHome(file, r_.environment),
                              .role_arn = role,
                              .session_name = OneOf(session, kSessionName),
                              .duration_s = p_.Get(profile, "duration_seconds")});
}

Result<Found> Chooser::FromSso(const std::string& profile) const {
  const std::string session = p_.Get(profile, "sso_session");
  const auto setting = [&](const char* key) {
    return OneOf(session.empty() ? "" : p_.InSection("sso-session", session, key),
                 p_.Get(profile, key));
  };
  const std::string start_url = setting("sso_start_url");
  const std::string region = setting("sso_region");
  const std::string account = p_.Get(profile, "sso_account_id");
  const std::string role = p_.Get(profile, "sso_role_name");
  if (session.empty() && start_url.empty()) return Found();
  if (account.empty() && role.empty() && !session.empty()) return Found();  // a token alone
  for (const auto& [key, value] :
       {std::pair("sso_start_url", start_url), std::pair("sso_region", region),
        std::pair("sso_account_id", account), std::pair("sso_role_name", role)}) {
    if (value.empty()) {
      return Wrong(fmt::format("profile '{}' is to use SSO but lacks {}: run 'aws configure sso'",
                               profile, key));
    }
  }
  const std::string suffix = region.starts_with("cn-") ? ".cn" : "";
  return Found(CredentialSpec{
      .kind = Kind::kSso,
      .name = fmt::format("profile '{}' (SSO, role {} of account {})", profile, role, account),
      .url =
          EndpointOf("sso", fmt::format("https://portal.sso.{}.amazonaws.com{}", region, suffix)),
      .region = region,
      .sso_account_id = account,
      .sso_role_name = role,
      .sso_cache_file = ExpandHome(
          fmt::format("~/.aws/sso/cache/{}.json", HexSha1(session.empty() ? start_url : session)),
          r_.environment),
      .oidc_url = session.empty()
                      ? ""
                      : EndpointOf("sso_oidc",
                                   fmt::format("https://oidc.{}.amazonaws.com{}", region, suffix)),
      .profile = profile});
}

Result<Found> Chooser::FromContainer() const {
  const std::string relative = Env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = Env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return Found();
  CredentialSpec spec{.kind = Kind::kContainer,
                      .token = Env("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                      .token_file = Env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")};
  if (!relative.empty()) {
    if (relative.front() != '/') {
      return Wrong("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with a slash");
    }
    spec.name = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    spec.url = relative;
    return Found(std::move(spec));
  }
  spec.name = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  Result<UrlParts> parts = SplitUrl(full);
  if (!parts.ok()) return Wrong(fmt::format("{}: {}", spec.name, parts.status().message()));
  std::string host = parts->host;
  const size_t port = host.find_last_of(':');
  if (port != host.npos && host.find(']', port) == host.npos) host.resize(port);
  std::string_view bare(host);
  if (bare.starts_with('[') && bare.ends_with(']')) bare = bare.substr(1, bare.size() - 2);
  // In the clear only to this machine and to the two agents: the answer is a secret.
  const bool near = net::IsLoopbackHost(bare) || host == "169.254.170.2" ||
                    host == "169.254.170.23" || host == "[fd00:ec2::23]";
  if (parts->scheme == "http" && !near) {
    return Wrong(
        fmt::format("{} names {} over plain http: only this machine and the container "
                    "agents 169.254.170.2, 169.254.170.23 and [fd00:ec2::23] may be asked "
                    "so; use https",
                    spec.name, host));
  }
  spec.url = full;
  return Found(std::move(spec));
}

Found Chooser::FromMetadata() const {
  if (r_.environment.IsTrue("AWS_EC2_METADATA_DISABLED")) return std::nullopt;
  std::string mode = OneOf(Env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"),
                           p_.Get(r_.profile, "ec2_metadata_service_endpoint_mode"));
  std::ranges::transform(mode, mode.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  CredentialSpec spec{.kind = Kind::kMetadata, .name = "the instance metadata service"};
  spec.url = OneOf(OneOf(Env("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
                         p_.Get(r_.profile, "ec2_metadata_service_endpoint")),
                   mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254");
  while (spec.url.ends_with('/')) spec.url.pop_back();
  const std::string timeout =
      OneOf(Env("AWS_METADATA_SERVICE_TIMEOUT"), p_.Get(r_.profile, "metadata_service_timeout"));
  const double seconds = std::strtod(timeout.c_str(), nullptr);
  if (std::isfinite(seconds) && seconds > 0) {
    spec.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.001, 600.0) * 1000));
  }
  const std::string attempts = OneOf(Env("AWS_METADATA_SERVICE_NUM_ATTEMPTS"),
                                     p_.Get(r_.profile, "metadata_service_num_attempts"));
  int number = 0;
  std::from_chars(attempts.data(), attempts.data() + attempts.size(), number);
  spec.attempts = std::clamp(number, 0, 100);
  return spec;
}

Result<Found> Chooser::FromPlainProfile(const std::string& profile) const {
  for (const auto look :
       {&Chooser::FromWebIdentity, &Chooser::FromSso, &Chooser::FromCredentialsFile}) {
    FB_ASSIGN_OR_RETURN(Found found, (this->*look)(profile));
    if (found) return found;
  }
  if (Found found = FromProcess(profile)) return found;
  return FromConfigFile(profile);
}

// What signs the AssumeRole of a profile whose source_profile is `profile`.
Result<CredentialSpec> Chooser::BaseOf(const std::string& profile, const std::string& role) {
  if (!p_.Has(profile)) {
    return Wrong(fmt::format("the source_profile '{}' of role {} is in neither {} nor {}", profile,
                             role, p_.credentials_path(), p_.config_path()));
  }
  FB_ASSIGN_OR_RETURN(Found fixed, FromConfigFile(profile));  // either file's keys
  if (fixed) return *std::move(fixed);
  if (std::ranges::find(visited_, profile) != visited_.end()) {
    return Wrong(fmt::format("the source_profile of profile '{}' leads back to itself", profile));
  }
  FB_ASSIGN_OR_RETURN(Found assumed, FromAssumeRole(profile));
  if (assumed) return *std::move(assumed);
  FB_ASSIGN_OR_RETURN(Found plain, FromPlainProfile(profile));
  if (plain) return *std::move(plain);
  return Wrong(
      fmt::format("the source_profile '{}' of role {} gives no credentials", profile, role));
}

Result<CredentialSpec> Chooser::FromNamedSource(const std::string& profile,
                                                const std::string& source) {
  Found found;
  if (source == "Environment") {
    FB_ASSIGN_OR_RETURN(found, FromEnvironment());
  } else if (source == "EcsContainer") {
    FB_ASSIGN_OR_RETURN(found, FromContainer());
  } else if (source == "Ec2InstanceMetadata") {
    found = FromMetadata();
  } else {
    return Wrong(
        fmt::format("profile '{}' has the credential_source '{}', which is not Environment, "
                    "EcsContainer or Ec2InstanceMetadata",
                    profile, source));
  }
  if (found) return *std::move(found);
  return Wrong(fmt::format("the credential_source {} of profile '{}' gives no credentials", source,
                           profile));
}

Result<Found> Chooser::FromAssumeRole(const std::string& profile) {
  const std::string role = p_.Get(profile, "role_arn");
  if (role.empty() || !p_.Get(profile, "web_identity_token_file").empty()) return Found();
  const std::string source_profile = p_.Get(profile, "source_profile");
  const std::string source = p_.Get(profile, "credential_source");
  if (source_profile.empty() == source.empty()) {
    return Wrong(
        fmt::format("profile '{}' has a role_arn and {} source_profile {} "
                    "credential_source: it needs one of them",
                    profile, source.empty() ? "neither" : "both", source.empty() ? "nor" : "and"));
  }
  if (!p_.Get(profile, "mfa_serial").empty()) {
    return Wrong(
        fmt::format("profile '{}' asks for an MFA code, which nobody types here: get a "
                    "session with 'aws sts' or through a credential_process",
                    profile));
  }
  visited_.push_back(profile);
  FB_ASSIGN_OR_RETURN(CredentialSpec base, source.empty() ? BaseOf(source_profile, role)
                                                          : FromNamedSource(profile, source));
  return Found(
      CredentialSpec{.kind = Kind::kAssumeRole,
                     .name = fmt::format("profile '{}' (role {})", profile, role),
                     .url = StsUrl(),
                     .region = r_.region,
                     .role_arn = role,
                     .session_name = OneOf(p_.Get(profile, "role_session_name"), kSessionName),
                     .external_id = p_.Get(profile, "external_id"),
                     .duration_s = p_.Get(profile, "duration_seconds"),
                     .base = std::make_shared<CredentialSpec>(std::move(base))});
}

Result<CredentialSpec> Chooser::Choose() {
  if (r_.options.no_sign_request) {
    return CredentialSpec{.name = "anonymous access", .fixed = {.anonymous = true}};
  }
  std::string tried;
  // A profile given as an option outranks the environment's keys; AWS_PROFILE alone does not.
  if (!explicit_profile()) {
    FB_ASSIGN_OR_RETURN(Found found, FromEnvironment());
    if (found) return *std::move(found);
    tried = "AWS_ACCESS_KEY_ID in the environment, ";
  }
  FB_ASSIGN_OR_RETURN(Found assumed, FromAssumeRole(r_.profile));
  if (assumed) return *std::move(assumed);
  FB_ASSIGN_OR_RETURN(Found plain, FromPlainProfile(r_.profile));
  if (plain) return *std::move(plain);
  FB_ASSIGN_OR_RETURN(Found container, FromContainer());
  if (container) return *std::move(container);
  tried += fmt::format("profile '{}' in {} and {}, a web identity, a container's URI", r_.profile,
                       p_.credentials_path(), p_.config_path());
  if (Found metadata = FromMetadata()) {
    metadata->tried = tried;
    return *std::move(metadata);
  }
  return Wrong(
      fmt::format("no credentials found; tried {}, and not the instance metadata service, "
                  "which AWS_EC2_METADATA_DISABLED forbids. Set AWS_ACCESS_KEY_ID and "
                  "AWS_SECRET_ACCESS_KEY or a profile; for public buckets ask for unsigned "
                  "requests",
                  tried));
}

}  // namespace

std::string CredentialSpec::Identity() const {
  std::string text = fmt::format("kind={}", static_cast<int>(kind));
  for (const std::string* part : {&fixed.access_key_id, &command, &surroundings, &url, &region,
                                  &token, &token_file, &role_arn, &session_name, &external_id,
                                  &duration_s, &sso_account_id, &sso_role_name, &sso_cache_file}) {
    text += fmt::format("\n{}:{}", part->size(), *part);
  }
  if (base) text += "\nbase " + base->Identity();
  return text;
}

Result<CredentialSpec> ChooseCredentials(const SpecRequest& request) {
  return Chooser(request).Choose();
}

}  // namespace forebay::store::s3
