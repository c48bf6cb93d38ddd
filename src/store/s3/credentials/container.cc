// The agents of ECS and of EKS Pod Identity: one GET, with a token that they replace as they like.
#include <fmt/core.h>

#include <utility>

#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/credentials/sources.h"

namespace forebay::store::s3 {
namespace {

constexpr std::chrono::seconds kConnectTimeout(2);
constexpr std::chrono::seconds kAnswerTimeout(5);

class ContainerSource final : public Source {
 public:
  ContainerSource(const CredentialSpec& spec, SourceContext& context)
      : spec_(spec), context_(context) {}

  void Fetch(OnFetched on_fetched) override {
    CallPlan plan{.service = fmt::format("the container agent of {}", spec_.name)};
    plan.make = [this] { return Request(); };
    context_.http.Call(
        std::move(plan), [this, done = std::move(on_fetched)](Result<ServiceReply> reply) mutable {
          const std::string service = fmt::format("the container agent of {}", spec_.name);
          if (!reply.ok()) {
            done(std::move(reply).status());
          } else if (reply->status != 200) {
            done(Refused(service, *reply,
                         "it gives no keys; is a role attached, and is the token that of this "
                         "container?"));
          } else {
            done(KeysFrom(reply->body, service));
          }
        });
  }

 private:
  Result<ServiceRequest> Request() const {
    ServiceRequest request;
    request.http.url = spec_.url.starts_with('/') ? context_.container_host + spec_.url : spec_.url;
    request.http.connect_timeout = kConnectTimeout;
    request.http.first_byte_timeout = kAnswerTimeout;
    std::string token = spec_.token;
    if (!spec_.token_file.empty()) {
      FB_ASSIGN_OR_RETURN(token, ReadToken(context_.environment, spec_.token_file,
                                           "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    }
    if (token.find_first_of("\r\n") != token.npos) {
      return Status(Code::kPermissionDenied,
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN has a line break in it");
    }
    if (!token.empty()) request.http.headers.emplace_back("Authorization", std::move(token));
    return request;
  }

  const CredentialSpec spec_;
  SourceContext& context_;
};

}  // namespace

std::unique_ptr<Source> MakeContainerSource(const CredentialSpec& spec, SourceContext& context) {
  return std::make_unique<ContainerSource>(spec, context);
}

}  // namespace forebay::store::s3
