// One S3 store on one scripted server: what servers should not say, and what a store makes of it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "net/routed_transport.h"
#include "store/s3/s3_store.h"
#include "store/sync_store.h"
#include "sys/event_loop.h"
#include "testing/scripted_server.h"

namespace forebay::testing {

inline constexpr int64_t kScriptNow = 1'780'000'000;  // Thu, 28 May 2026 20:26:40 GMT
inline constexpr char kScriptSecret[] = "the-secret";

inline std::string ErrorXml(const std::string& code, const std::string& more = "") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code +
         "</Code><Message>words</Message>" + more + "<RequestId>xml-id</RequestId></Error>";
}

inline ScriptedServer::Script Say(ScriptedReply reply) {
  return [reply](const SeenRequest&) { return reply; };
}

// The signature's scope: "20260528/us-east-1/s3".
inline std::string ScopeOf(const SeenRequest& request) {
  const std::string_view text = net::FindHeader(request.headers, "authorization");
  const size_t begin = std::min(text.find('/'), text.size());
  const size_t end = std::min(text.find("/aws4_request"), text.size());
  return begin < end ? std::string(text.substr(begin + 1, end - begin - 1)) : "";
}
inline std::string AccessKeyOf(const SeenRequest& request) {
  const std::string_view text = net::FindHeader(request.headers, "authorization");
  const size_t begin = text.find("Credential=");
  if (begin == text.npos) return "";
  return std::string(text.substr(begin + 11, text.find('/', begin) - begin - 11));
}

// Its reads ask for bytes 2-5 of a ten-byte object "0123456789" with etag "e".
class ScriptedS3 {
 public:
  struct Options {
    bool stack = false;  // behind retries, limit and meter
    std::string bucket = "b";
    // Changes what the store is made of; the endpoint is the server's.
    std::function<void(store::s3::S3StoreOptions&)> adjust = nullptr;
  };

  explicit ScriptedS3(ScriptedServer::Script script) : ScriptedS3(std::move(script), Options()) {}
  ScriptedS3(ScriptedServer::Script script, const Options& options)
      : server_(std::move(script)), loop_(*sys::EventLoop::Make("scripted-s3")) {
    transport_ = *net::MakeTransport(*loop_, {});
    store::s3::S3StoreOptions made{
        .bucket = options.bucket,
        .config = {.credentials = {.access_key_id = "ID", .secret_access_key = kScriptSecret},
                   .region = "us-east-1",
                   .endpoint_url = server_.url()},
        .unix_time_s = [] { return kScriptNow; },
        .clock = std::make_shared<store::s3::ClockOffset>()};
    if (options.adjust) options.adjust(made);
    clock_ = made.clock;
    std::shared_ptr<store::ObjectStore> store;
    if (options.stack) {
      meter_ = *store::s3::MakeS3Stack({}, made.config, options.bucket, *transport_);
      store = meter_;
    } else {
      auto single = store::s3::MakeS3Store(made, *transport_);
      made_ = single.status();
      if (single.ok()) store = *single;
    }
    if (store) store_ = std::make_unique<store::SyncStore>(std::move(store));
  }
  ~ScriptedS3() { loop_->Stop(); }

  Status Read(bool clamp = false, ByteRange range = {2, 6}, std::string etag = "e",
              std::string version = "") {
    text.assign(range.size(), '#');
    auto result = store_->Read({.key = "k",
                                .etag = std::move(etag),
                                .version_id = std::move(version),
                                .range = range,
                                .target = {std::as_writable_bytes(std::span(text))},
                                .clamp_to_object = clamp});
    if (result.ok()) read = *result;
    return result.status();
  }
  store::SyncStore& store() { return *store_; }
  ScriptedServer& server() { return server_; }
  store::MeterStore& meter() { return *meter_; }
  SeenRequest seen(size_t i) const { return server_.seen().at(i); }
  size_t requests() const { return server_.seen().size(); }
  int64_t clock_offset_s() const { return clock_->offset_s(); }
  const Status& made() const { return made_; }

  std::string text;
  store::ReadResult read;

 private:
  ScriptedServer server_;
  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
  std::shared_ptr<store::MeterStore> meter_;
  std::shared_ptr<store::s3::ClockOffset> clock_;
  Status made_;
  std::unique_ptr<store::SyncStore> store_;
};

// What a right server says to its reads.
inline ScriptedReply GoodRange() {
  return {HttpText(206, {{"Content-Range", "bytes 2-5/10"}, {"ETag", "\"e\""}}, "2345")};
}

// Of a HEAD: head only, of an object of that size.
inline ScriptedReply HeadReply(int status, const net::HeaderList& headers, int size = 10) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  for (const auto& [name, value] : headers) {
    text.append(name).append(": ").append(value).append("\r\n");
  }
  return {text + "Content-Length: " + std::to_string(size) + "\r\n\r\n"};
}

}  // namespace forebay::testing
