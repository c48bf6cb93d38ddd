// From what a service says to credentials. Private to the sources.
#pragma once

#include <string>
#include <string_view>

#include "store/s3/credentials/flat_json.h"
#include "store/s3/credentials/source.h"

namespace forebay::store::s3 {

// The names under which an answer holds the parts.
struct KeyNames {
  const char* id = "AccessKeyId";
  const char* secret = "SecretAccessKey";
  const char* token = "Token";
  const char* expires = "Expiration";  // as ParseUtcTime reads it
};
// kUnavailable when the answer lacks the id or the secret or is no JSON: services in trouble say
// so, and the next answer may be whole.
Result<Fetched> KeysFrom(std::string_view body, const std::string& service,
                         const KeyNames& names = {});

// What an answer that is not 200 becomes: kUnavailable for what IsWorthRepeating, else
// kPermissionDenied with `hint`.
Status Refused(const std::string& service, const ServiceReply& reply, const std::string& hint);

// A token's file, without the blanks around. kPermissionDenied when it is missing, empty, or holds
// what no header can.
Result<std::string> ReadToken(const Environment& environment, const std::string& path,
                              const std::string& what);

}  // namespace forebay::store::s3
