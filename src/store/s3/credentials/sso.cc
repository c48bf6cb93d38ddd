// IAM Identity Center: the token that `aws sso login` has left, renewed while it can be, buys a
// role's keys.
#include <fmt/core.h>

#include <utility>

#include "base/ascii.h"
#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/credentials/sources.h"
#include "store/s3/endpoint.h"

namespace forebay::store::s3 {
namespace {

constexpr int64_t kRenewAhead = 15 * 60;

class SsoSource final : public Source {
 public:
  SsoSource(const CredentialSpec& spec, SourceContext& context) : spec_(spec), context_(context) {}

  void Fetch(OnFetched on_fetched) override {
    on_fetched_ = std::move(on_fetched);
    const std::optional<std::string> text = context_.environment.file(spec_.sso_cache_file);
    Result<FlatJson> cached = ParseFlatJson(text.value_or(""));
    if (!cached.ok() || TextOf(*cached, "accessToken").empty()) {
      return Fail(Login(fmt::format("{} holds no token", spec_.sso_cache_file)));
    }
    cached_ = *std::move(cached);
    const int64_t left = ParseUtcTime(TextOf(cached_, "expiresAt")) - context_.unix_time_s();
    if (left > kRenewAhead || (left > 0 && !Renewable())) return AskKeys();
    if (!Renewable()) return Fail(Login("the session has ended"));
    Renew(left > 0);
  }

 private:
  bool Renewable() const {
    return !spec_.oidc_url.empty() && !TextOf(cached_, "refreshToken").empty() &&
           !TextOf(cached_, "clientId").empty() && !TextOf(cached_, "clientSecret").empty();
  }
  Status Login(const std::string& why) const {
    return Status(Code::kPermissionDenied, fmt::format("{}: {}; run 'aws sso login --profile {}'",
                                                       spec_.name, why, spec_.profile));
  }

  void Renew(bool still_good) {
    CallPlan plan{.service = fmt::format("the SSO service at {}", HideUserinfo(spec_.oidc_url))};
    plan.make = [this]() -> Result<ServiceRequest> {
      ServiceRequest request;
      request.http.method = "POST";
      request.http.url = spec_.oidc_url + "/token";
      request.http.headers.emplace_back("Content-Type", "application/json");
      request.body = WriteFlatJson({{"clientId", TextOf(cached_, "clientId")},
                                    {"clientSecret", TextOf(cached_, "clientSecret")},
                                    {"grantType", "refresh_token"},
                                    {"refreshToken", TextOf(cached_, "refreshToken")}});
      return request;
    };
    context_.http.Call(std::move(plan), [this, still_good](Result<ServiceReply> reply) {
      if (reply.ok() && reply->status == 200 && Keep(reply->body)) return AskKeys();
      if (still_good) return AskKeys();  // with what there is; the next fetch tries again
      if (!reply.ok()) return Fail(std::move(reply).status());
      if (IsWorthRepeating(reply->status)) return Fail(Refused(spec_.name, *reply, ""));
      Fail(Login("the session has ended and is not renewed"));
    });
  }

  // The new token replaces the old one in its file, for the AWS tools as well: the old refresh
  // token may be worth nothing any more.
  bool Keep(const std::string& body) {
    const Result<FlatJson> fresh = ParseFlatJson(body);
    if (!fresh.ok() || TextOf(*fresh, "accessToken").empty()) return false;
    cached_["accessToken"] = TextOf(*fresh, "accessToken");
    cached_["expiresAt"] = FormatUtcTime(context_.unix_time_s() + NumberOf(*fresh, "expiresIn"));
    const std::string refresh = TextOf(*fresh, "refreshToken");
    if (!refresh.empty()) cached_["refreshToken"] = refresh;
    (void)context_.write_file(spec_.sso_cache_file, WriteFlatJson(cached_));
    return true;
  }

  void AskKeys() {
    CallPlan plan{.service = fmt::format("the SSO service at {}", HideUserinfo(spec_.url))};
    plan.make = [this]() -> Result<ServiceRequest> {
      ServiceRequest request;
      request.http.url = fmt::format(
          "{}/federation/credentials?{}", spec_.url,
          EncodeQuery({{"role_name", spec_.sso_role_name}, {"account_id", spec_.sso_account_id}}));
      request.http.headers.emplace_back("x-amz-sso_bearer_token", TextOf(cached_, "accessToken"));
      return request;
    };
    context_.http.Call(std::move(plan), [this](Result<ServiceReply> reply) {
      if (!reply.ok()) return Fail(std::move(reply).status());
      if (reply->status == 401) return Fail(Login("the token is refused"));
      if (reply->status != 200) {
        return Fail(Refused(spec_.name, *reply, "the role is not given to this user"));
      }
      Result<Fetched> fetched = KeysFrom(reply->body, spec_.name,
                                         {.id = "roleCredentials.accessKeyId",
                                          .secret = "roleCredentials.secretAccessKey",
                                          .token = "roleCredentials.sessionToken"});
      if (fetched.ok()) {
        const Result<FlatJson> values = ParseFlatJson(reply->body);
        fetched->expires_unix_s = NumberOf(*values, "roleCredentials.expiration") / 1000;
      }
      End(std::move(fetched));
    });
  }

  void Fail(Status status) { End(std::move(status)); }
  void End(Result<Fetched> result) { std::exchange(on_fetched_, nullptr)(std::move(result)); }

  const CredentialSpec spec_;
  SourceContext& context_;
  OnFetched on_fetched_;
  FlatJson cached_;
};

}  // namespace

std::unique_ptr<Source> MakeSsoSource(const CredentialSpec& spec, SourceContext& context) {
  return std::make_unique<SsoSource>(spec, context);
}

}  // namespace forebay::store::s3
