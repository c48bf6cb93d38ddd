// A credential_process: a program of the user's that prints keys as JSON.
#include <fmt/core.h>

#include <utility>

#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/credentials/sources.h"

namespace forebay::store::s3 {
namespace {

constexpr std::chrono::seconds kRunLimit(60);

class ProcessSource final : public Source {
 public:
  ProcessSource(const CredentialSpec& spec, SourceContext& context)
      : spec_(spec), context_(context) {}

  void Fetch(OnFetched on_fetched) override {
    Result<std::vector<std::string>> argv = sys::SplitCommand(spec_.command);
    if (!argv.ok() || argv->empty()) {
      on_fetched(Refuse("is no command line"));
      return;
    }
    context_.run_program(*std::move(argv), kRunLimit,
                         [this, done = std::move(on_fetched)](
                             Result<sys::ProcessResult> result) mutable { done(Read(result)); });
  }

 private:
  // The command may hold a secret, and so may what it prints.
  Status Refuse(const std::string& why) const {
    return Status(Code::kPermissionDenied, fmt::format("{} {}", spec_.name, why));
  }

  Result<Fetched> Read(const Result<sys::ProcessResult>& result) const {
    if (!result.ok()) {
      switch (result.code()) {
        case Code::kDeadlineExceeded:
          return Refuse(fmt::format("was ended after {} s", kRunLimit.count()));
        case Code::kCancelled:
          return Status(Code::kCancelled, fmt::format("{} was ended", spec_.name));
        case Code::kNotFound:
          return Refuse("names a program that is not there");
        default:
          return Refuse(fmt::format("cannot be run ({})", CodeName(result.code())));
      }
    }
    if (result->exit_code != 0) {
      return Refuse(
          fmt::format("ended with exit code {}; what it said about that is on its "
                      "standard error",
                      result->exit_code));
    }
    const Result<FlatJson> values = ParseFlatJson(result->output);
    if (!values.ok()) return Refuse("printed no JSON object");
    if (TextOf(*values, "Version") != "1") return Refuse("printed no \"Version\": 1");
    const std::string expires = TextOf(*values, "Expiration");
    if (!expires.empty() && ParseUtcTime(expires) == 0) {
      return Refuse("printed an Expiration that is no time like 2026-11-30T02:47:21Z");
    }
    Result<Fetched> fetched = KeysFrom(result->output, spec_.name, {.token = "SessionToken"});
    if (!fetched.ok()) return Refuse("printed no AccessKeyId or no SecretAccessKey");
    return fetched;
  }

  const CredentialSpec spec_;
  SourceContext& context_;
};

}  // namespace

std::unique_ptr<Source> MakeProcessSource(const CredentialSpec& spec, SourceContext& context) {
  return std::make_unique<ProcessSource>(spec, context);
}

}  // namespace forebay::store::s3
