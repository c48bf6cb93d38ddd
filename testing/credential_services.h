// The services that give credentials, on scripted servers, and what asks them, put together for a
// test.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "net/curl_transport.h"
#include "store/s3/credentials/flat_json.h"
#include "store/s3/credentials/source.h"
#include "store/s3/credentials/spec.h"
#include "sys/event_loop.h"
#include "sys/shared_file.h"
#include "testing/scripted_server.h"

namespace forebay::testing {

inline ScriptedReply Say(int status, const std::string& body, const net::HeaderList& more = {}) {
  return {.bytes = HttpText(status, more, body), .then = ScriptedReply::Then::kKeep};
}

// The documents that say which keys; each ends at `expires`.
inline std::string KeysJson(const std::string& id, int64_t expires) {
  return fmt::format(
      R"({{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"{}","SecretAccessKey":"{}-secret",)"
      R"("Token":"{}-token","Expiration":"{}"}})",
      id, id, id, store::s3::FormatUtcTime(expires));
}
inline std::string KeysXml(const std::string& action, const std::string& id, int64_t expires) {
  return fmt::format(
      "<{0}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{0}Result><Credentials>"
      "<AccessKeyId>{1}</AccessKeyId><SecretAccessKey>{1}-secret</SecretAccessKey>"
      "<SessionToken>{1}-token</SessionToken><Expiration>{2}</Expiration></Credentials>"
      "</{0}Result></{0}Response>",
      action, id, store::s3::FormatUtcTime(expires));
}

// Sources on a loop of their own; Fetch waits.
class SourceBench {
 public:
  explicit SourceBench(store::s3::Environment environment)
      : loop_(*sys::EventLoop::Make("sources")),
        transport_(*net::MakeCurlTransport(*loop_, {})),
        calls_(std::make_unique<store::s3::ServiceCalls>(*transport_, 7)),
        context(store::s3::SourceContext{.executor = *loop_,
                                         .http = *calls_,
                                         .environment = std::move(environment),
                                         .unix_time_s = [this] { return now.load(); },
                                         .run_program =
                                             [this](std::vector<std::string> argv, Duration limit,
                                                    store::s3::SourceContext::OnRun on_run) {
                                               programs.push_back(argv);
                                               on_run(sys::RunProcess(
                                                   argv, std::min<Duration>(limit, program_limit),
                                                   65536, stop_));
                                             },
                                         .write_file = sys::ReplacePrivateFile}) {}
  ~SourceBench() { loop_->Stop(); }

  Result<store::s3::Fetched> Fetch(store::s3::Source& source) {
    std::promise<Result<store::s3::Fetched>> promise;
    loop_->Post([&] {
      source.Fetch(
          [&](Result<store::s3::Fetched> fetched) { promise.set_value(std::move(fetched)); });
    });
    return promise.get_future().get();
  }
  Result<store::s3::Fetched> Fetch(const store::s3::CredentialSpec& spec) {
    sources_.push_back(store::s3::MakeSource(spec, context));
    return Fetch(*sources_.back());
  }
  sys::EventLoop& loop() { return *loop_; }

  std::atomic<int64_t> now = 1'780'000'000;
  std::vector<std::vector<std::string>> programs;
  Duration program_limit = std::chrono::seconds(30);

 private:
  const std::atomic<bool> stop_ = false;
  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
  std::unique_ptr<store::s3::ServiceCalls> calls_;
  std::vector<std::unique_ptr<store::s3::Source>> sources_;

 public:
  store::s3::SourceContext context;
};

}  // namespace forebay::testing
