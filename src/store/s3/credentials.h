// Who signs, and where to: the AWS_* variables and the profile files, as the AWS tools read them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay::store::s3 {

// Never put one of these into a message: a secret has no place in a log.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  bool anonymous = false;  // then the rest is empty, and nothing is signed
};

// How the outside is read; tests give their own.
struct Environment {
  // The variable's value; none when unset. An empty value counts as unset everywhere here.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // The file's content; none when there is no such file, or, with a line of log, when it cannot be
  // read.
  std::function<std::optional<std::string>(const std::string& path)> file;
  // Why a file that is there cannot be read; OK also where there is none. Unset: all can.
  std::function<Status(const std::string& path)> check_file = nullptr;

  // What a program that is run from here sees, beyond single variables: for telling apart what two
  // processes would be given by it. Unset: nothing.
  std::function<std::string()> surroundings = nullptr;

  static Environment Process();
  // The variable's value, or "".
  std::string Text(const std::string& name) const { return variable(name).value_or(""); }
  // "true", whatever its case.
  bool IsTrue(const std::string& name) const;
};

class CredentialsProvider;
struct CredentialSpec;

// StoreOptions with every empty field filled from the environment and the profile.
struct AwsConfig {
  Credentials credentials;  // empty when they have to be fetched
  // How to fetch them; null: `credentials` are what there is.
  std::shared_ptr<const CredentialSpec> fetched_by;
  // Who signs (OpenCredentials sets it); null: `credentials`, for ever.
  std::shared_ptr<CredentialsProvider> provider;
  std::string region;        // "us-east-1" when nothing says otherwise
  std::string endpoint_url;  // "": AWS's own
  std::string ca_bundle;
  std::string addressing_style = "auto";
  int max_attempts = 5;
  std::string retry_mode = "standard";  // "legacy", "standard", "adaptive"
  bool use_dualstack = false;           // these three only of AWS's own endpoints
  bool use_fips = false;
  bool use_accelerate = false;
  // "when_supported", "when_required", or "" when nothing says: then it depends on the store.
  std::string request_checksum;
  std::string response_checksum;
};

// Order: the option; for credentials without an explicit profile, the environment; the profile
// (option, AWS_PROFILE, "default") in ~/.aws/credentials and ~/.aws/config, or where
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say (then one that is there and cannot be read is
// an error); for credentials then the container's agent
// and the instance's metadata service. Reads small files; asks nobody. kPermissionDenied, naming
// what was tried, when nothing can give credentials and anonymous access was not asked for.
Result<AwsConfig> LoadAwsConfig(const StoreOptions& options, const Environment& environment);

// Sets config.provider when the credentials have to be fetched: the process's one for that source,
// which fetches on a thread of its own. Does not wait for the first fetch.
Status OpenCredentials(AwsConfig& config, const Environment& environment, bool verify_tls);

}  // namespace forebay::store::s3
