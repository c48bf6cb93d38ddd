#include "store/s3/credentials/fetched_keys.h"

#include <fmt/core.h>

#include <algorithm>

namespace forebay::store::s3 {

Result<Fetched> KeysFrom(std::string_view body, const std::string& service, const KeyNames& names) {
  const Result<FlatJson> values = ParseFlatJson(body);
  Fetched fetched;
  if (values.ok()) {
    fetched.credentials = {.access_key_id = TextOf(*values, names.id),
                           .secret_access_key = TextOf(*values, names.secret),
                           .session_token = TextOf(*values, names.token)};
    fetched.expires_unix_s = ParseUtcTime(TextOf(*values, names.expires));
  }
  if (fetched.credentials.access_key_id.empty() || fetched.credentials.secret_access_key.empty()) {
    return Status(Code::kUnavailable, fmt::format("{} gives an answer without {}", service,
                                                  values.ok() ? "keys in it" : "any JSON in it"));
  }
  return fetched;
}

Status Refused(const std::string& service, const ServiceReply& reply, const std::string& hint) {
  if (IsWorthRepeating(reply.status)) {
    return Status(Code::kUnavailable, fmt::format("{} keeps answering {}", service, reply.status));
  }
  return Status(Code::kPermissionDenied,
                fmt::format("{} answers {}: {}", service, reply.status, hint));
}

Result<std::string> ReadToken(const Environment& environment, const std::string& path,
                              const std::string& what) {
  const std::optional<std::string> text = environment.file(path);
  if (!text) {
    return Status(Code::kPermissionDenied, fmt::format("{} {} cannot be read", what, path));
  }
  std::string token = *text;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!token.empty() && blank(token.back())) token.pop_back();
  while (!token.empty() && blank(token.front())) token.erase(token.begin());
  const bool sendable = std::ranges::all_of(
      token, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (token.empty() || !sendable) {
    return Status(Code::kPermissionDenied, fmt::format("{} {} holds no token", what, path));
  }
  return token;
}

}  // namespace forebay::store::s3
