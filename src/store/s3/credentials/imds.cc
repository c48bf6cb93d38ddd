// The metadata service of an EC2 instance, version 2: a session token first, with it the role's
// name and then the role's keys. Version 1, which any request forged by a server can reach, is
// never spoken.
#include <fmt/core.h>

#include <utility>

#include "base/ascii.h"
#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/credentials/sources.h"

namespace forebay::store::s3 {
namespace {

constexpr char kTokenPath[] = "/latest/api/token";
constexpr char kRolePath[] = "/latest/meta-data/iam/security-credentials/";
constexpr char kTokenHeader[] = "x-aws-ec2-metadata-token";
constexpr char kLifeHeader[] = "x-aws-ec2-metadata-token-ttl-seconds";
constexpr int64_t kTokenLife = 21600;  // the longest there is
// A connection inside the instance takes no time; an answer may, when hundreds of processes ask.
constexpr std::chrono::seconds kConnectTimeout(1);
constexpr std::chrono::seconds kAnswerTimeout(5);

class MetadataSource final : public Source {
 public:
  MetadataSource(const CredentialSpec& spec, SourceContext& context)
      : spec_(spec), context_(context) {}

  void Fetch(OnFetched on_fetched) override {
    on_fetched_ = std::move(on_fetched);
    renewed_ = false;
    Begin();
  }

 private:
  void Begin() {
    if (!token_.empty() && context_.executor.Now() < token_until_) {
      AskRole();
    } else {
      AskToken();
    }
  }

  CallPlan Plan(const char* method, std::string path) {
    CallPlan plan{.service = fmt::format("{} at {}", spec_.name, HideUserinfo(spec_.url))};
    plan.make = [this, method, path = std::move(path)]() -> Result<ServiceRequest> {
      ServiceRequest request;
      request.http.method = method;
      request.http.url = spec_.url + path;
      request.http.connect_timeout = spec_.timeout.count() > 0 ? spec_.timeout : kConnectTimeout;
      request.http.first_byte_timeout = spec_.timeout.count() > 0 ? spec_.timeout : kAnswerTimeout;
      if (path == kTokenPath) {
        request.http.headers.emplace_back(kLifeHeader, std::to_string(kTokenLife));
      } else {
        request.http.headers.emplace_back(kTokenHeader, token_);
      }
      return request;
    };
    plan.attempts = spec_.attempts > 0 ? spec_.attempts : 6;
    plan.unanswered_attempts = spec_.attempts > 0 ? spec_.attempts : 4;
    return plan;
  }

  void AskToken() {
    token_.clear();
    context_.http.Call(Plan("PUT", kTokenPath), [this](Result<ServiceReply> reply) {
      if (!reply.ok()) return Fail(reply.status(), true);
      if (reply->status != 200 || reply->body.empty()) {
        return Fail(Refused(spec_.name, *reply,
                            "it gives no session token; is its use switched off for this "
                            "instance?"));
      }
      token_ = std::move(reply->body);
      int64_t life = kTokenLife;
      const std::string told(net::FindHeader(reply->headers, kLifeHeader));
      if (const int64_t seconds = NumberOf({{"life", told}}, "life"); seconds > 0) life = seconds;
      // A little less, so that none ends on its way.
      token_until_ = context_.executor.Now() + std::chrono::seconds(life) * 9 / 10;
      AskRole();
    });
  }

  void AskRole() {
    Get(kRolePath, [this](const ServiceReply& reply) {
      const std::string role = reply.body.substr(0, reply.body.find_first_of("\r\n"));
      if (reply.status == 404 || (reply.status == 200 && role.empty())) {
        return Fail(Status(
            Code::kPermissionDenied,
            fmt::format("{} answers, but no role is attached to this instance", spec_.name)));
      }
      if (reply.status != 200) return Fail(Refused(spec_.name, reply, "it names no role"));
      AskKeys(role);
    });
  }

  void AskKeys(const std::string& role) {
    Get(kRolePath + role, [this, role](const ServiceReply& reply) {
      if (reply.status != 200) return Fail(Refused(spec_.name, reply, "it gives no keys"));
      const Result<FlatJson> values = ParseFlatJson(reply.body);
      const std::string code = values.ok() ? TextOf(*values, "Code") : "";
      if (!code.empty() && code != "Success") {
        return Fail(Status(Code::kUnavailable, fmt::format("{} has no keys of role {} now: {}",
                                                           spec_.name, role, code)));
      }
      End(KeysFrom(reply.body, spec_.name));
    });
  }

  void Get(std::string path, std::move_only_function<void(const ServiceReply&)> on_reply) {
    context_.http.Call(Plan("GET", std::move(path)),
                       [this, on_reply = std::move(on_reply)](Result<ServiceReply> reply) mutable {
                         if (!reply.ok()) return Fail(reply.status(), true);
                         if (reply->status == 401 && !std::exchange(renewed_, true))
                           return AskToken();
                         on_reply(*reply);
                       });
  }

  // The last place of all: its failure is that there are no credentials, and says where they were
  // looked for. Without any answer there is nobody, most likely, and asking again will not help.
  void Fail(Status status, bool unanswered = false) {
    if (spec_.tried.empty() || (status.code() != Code::kPermissionDenied && !unanswered)) {
      return End(std::move(status));
    }
    End(Status(Code::kPermissionDenied,
               fmt::format("no credentials found; tried {}, and {}. Set AWS_ACCESS_KEY_ID and "
                           "AWS_SECRET_ACCESS_KEY or a profile, or attach a role; in a container "
                           "the instance's metadata hop limit must be 2; for public buckets ask "
                           "for unsigned requests",
                           spec_.tried, status.message())));
  }
  void End(Result<Fetched> result) { std::exchange(on_fetched_, nullptr)(std::move(result)); }

  const CredentialSpec spec_;
  SourceContext& context_;
  OnFetched on_fetched_;
  std::string token_;
  Time token_until_{};
  bool renewed_ = false;  // the token, within this fetch
};

}  // namespace

std::unique_ptr<Source> MakeMetadataSource(const CredentialSpec& spec, SourceContext& context) {
  return std::make_unique<MetadataSource>(spec, context);
}

}  // namespace forebay::store::s3
