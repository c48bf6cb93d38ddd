// Which credentials are to be used, decided from options, environment and profile files alone: one
// source, in botocore's order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/executor.h"
#include "forebay/options.h"
#include "forebay/status.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials/profile.h"

namespace forebay::store::s3 {

struct CredentialSpec {
  enum class Kind : uint8_t {
    kFixed,        // `fixed`, known already
    kProcess,      // what `command` prints
    kContainer,    // ECS or EKS Pod Identity: GET `url`
    kMetadata,     // the instance's, at `url`
    kWebIdentity,  // `role_arn` for the token in `token_file`
    kAssumeRole,   // `role_arn` for what `base` gives
    kSso,          // of the session whose token `aws sso login` left in ~/.aws/sso/cache
  };
  Kind kind = Kind::kFixed;
  std::string name;  // for messages and the log: "profile 'x' (role arn:..)"
  Credentials fixed;

  std::string command;
  std::string surroundings;  // that it runs in: it may look at them
  std::string url;           // also of the STS or SSO service
  std::string region;        // to sign for; of SSO its own
  std::string token;         // of a container, from the environment; a secret
  std::string token_file;    // re-read at every fetch
  std::string role_arn;
  std::string session_name;
  std::string external_id;  // a secret between two parties
  std::string duration_s;
  std::string sso_account_id;
  std::string sso_role_name;
  std::string sso_cache_file;
  std::string oidc_url;  // where an sso-session's token is renewed; "": it cannot be
  std::string profile;   // to name in a hint
  Duration timeout{};    // of the metadata service; 0: ours
  int attempts = 0;      // 0: ours
  std::shared_ptr<const CredentialSpec> base;
  std::string tried;  // what was looked at before, for the message when this has nothing

  // All that decides which keys come out; a secret itself: it is for hashing.
  std::string Identity() const;
};

struct SpecRequest {
  const StoreOptions& options;
  const Environment& environment;
  const Profiles& profiles;
  std::string profile;  // the one in use, "default" when none is named
  std::string region;
};

// kPermissionDenied when nothing is configured or what is configured cannot work: it names what was
// tried and what to do. Never anonymous unless that was asked for.
Result<CredentialSpec> ChooseCredentials(const SpecRequest& request);

}  // namespace forebay::store::s3
