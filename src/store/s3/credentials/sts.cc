// Roles: AssumeRole, signed with other credentials, and AssumeRoleWithWebIdentity, for a token.
#include <fmt/core.h>

#include <pugixml.hpp>
#include <utility>

#include "base/ascii.h"
#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/credentials/sources.h"
#include "store/s3/endpoint.h"
#include "store/s3/sigv4.h"

namespace forebay::store::s3 {
namespace {

constexpr std::chrono::seconds kAnswerTimeout(10);

struct StsError {
  std::string code;
  std::string message;
};

StsError ParseError(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  const pugi::xml_node error = document.child("ErrorResponse").child("Error");
  return {.code = error.child_value("Code"), .message = error.child_value("Message")};
}

bool IsPassing(const ServiceReply& reply) {
  if (IsWorthRepeating(reply.status)) return true;
  if (reply.status != 400 && reply.status != 403) return false;
  const std::string code = ParseError(reply.body).code;
  return code == "IDPCommunicationError" || code.starts_with("Throttl") ||
         code == "RequestLimitExceeded" || code == "PriorRequestNotComplete" ||
         code == "RequestThrottled" || code == "RequestThrottledException";
}

class StsSource final : public Source {
 public:
  StsSource(const CredentialSpec& spec, SourceContext& context)
      : spec_(spec), context_(context), signer_(spec.region, "sts") {
    if (!spec.base) return;
    if (spec.base->kind == CredentialSpec::Kind::kFixed) {
      signing_ = spec.base->fixed;
    } else {
      base_ = MakeSource(*spec.base, context);
    }
  }

  void Fetch(OnFetched on_fetched) override {
    if (!base_) return Ask(std::move(on_fetched));
    base_->Fetch([this, done = std::move(on_fetched)](Result<Fetched> base) mutable {
      if (!base.ok()) {
        done(std::move(base).status().WithContext(
            fmt::format("{}, the keys to ask with", spec_.name)));
        return;
      }
      signing_ = std::move(base->credentials);
      Ask(std::move(done));
    });
  }

 private:
  void Ask(OnFetched on_fetched) {
    CallPlan plan{.service = fmt::format("STS at {}", HideUserinfo(spec_.url))};
    plan.make = [this] { return Request(); };
    plan.retries = IsPassing;
    context_.http.Call(std::move(plan),
                       [this, done = std::move(on_fetched)](Result<ServiceReply> reply) mutable {
                         if (reply.ok()) {
                           done(Read(*reply));
                         } else {
                           done(std::move(reply).status().WithContext(spec_.name));
                         }
                       });
  }

  const char* action() const {
    return spec_.token_file.empty() ? "AssumeRole" : "AssumeRoleWithWebIdentity";
  }

  Result<ServiceRequest> Request() {
    FB_ASSIGN_OR_RETURN(const UrlParts url, SplitUrl(spec_.url));
    Query form{{"Action", action()},
               {"Version", "2011-06-15"},
               {"RoleArn", spec_.role_arn},
               {"RoleSessionName", spec_.session_name}};
    if (!spec_.duration_s.empty()) form.emplace_back("DurationSeconds", spec_.duration_s);
    if (!spec_.external_id.empty()) form.emplace_back("ExternalId", spec_.external_id);
    if (!spec_.token_file.empty()) {
      FB_ASSIGN_OR_RETURN(std::string token, ReadToken(context_.environment, spec_.token_file,
                                                       "the web identity token's file"));
      form.emplace_back("WebIdentityToken", std::move(token));
    }
    ServiceRequest request;
    request.body = EncodeQuery(form);
    const std::string path = url.path.empty() ? "/" : url.path;
    request.http.method = "POST";
    request.http.url = fmt::format("{}://{}{}", url.scheme, url.host, path);
    request.http.first_byte_timeout = kAnswerTimeout;
    request.http.headers.emplace_back("Content-Type",
                                      "application/x-www-form-urlencoded; charset=utf-8");
    if (spec_.token_file.empty()) {
      signer_.Sign(signing_,
                   {.method = "POST",
                    .host = url.host,
                    .path = path,
                    .query = "",
                    .payload_sha256 = HexSha256({AsBytes(request.body)}),
                    .unix_time_s = context_.unix_time_s()},
                   request.http.headers);
    }
    return request;
  }

  Result<Fetched> Read(const ServiceReply& reply) const {
    if (reply.status != 200) return Explain(reply);
    pugi::xml_document document;
    document.load_buffer(reply.body.data(), reply.body.size());
    const pugi::xml_node keys = document.child(fmt::format("{}Response", action()).c_str())
                                    .child(fmt::format("{}Result", action()).c_str())
                                    .child("Credentials");
    Fetched fetched{.credentials = {.access_key_id = keys.child_value("AccessKeyId"),
                                    .secret_access_key = keys.child_value("SecretAccessKey"),
                                    .session_token = keys.child_value("SessionToken")},
                    .expires_unix_s = ParseUtcTime(keys.child_value("Expiration"))};
    if (fetched.credentials.access_key_id.empty() ||
        fetched.credentials.secret_access_key.empty()) {
      return Status(Code::kUnavailable, fmt::format("STS at {} gives an answer without keys in it",
                                                    HideUserinfo(spec_.url)));
    }
    return fetched;
  }

  Status Explain(const ServiceReply& reply) const {
    const StsError error = ParseError(reply.body);
    // That message repeats what was signed, with the session token in it.
    const bool repeats = error.code == "SignatureDoesNotMatch";
    const std::string words =
        repeats ? "the secret key is not that of the access key id" : error.message.substr(0, 300);
    return Status(IsPassing(reply) ? Code::kUnavailable : Code::kPermissionDenied,
                  fmt::format("{}: STS at {} answers {} {}: {}", spec_.name,
                              HideUserinfo(spec_.url), reply.status, error.code, words));
  }

  const CredentialSpec spec_;
  SourceContext& context_;
  Signer signer_;
  Credentials signing_;
  std::unique_ptr<Source> base_;
};

}  // namespace

std::unique_ptr<Source> MakeStsSource(const CredentialSpec& spec, SourceContext& context) {
  return std::make_unique<StsSource>(spec, context);
}

}  // namespace forebay::store::s3
