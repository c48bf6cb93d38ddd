// Small requests to the services that give credentials, repeated while that may help.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "net/http.h"

namespace forebay::store::s3 {

struct ServiceRequest {
  net::HttpRequest http;  // all but its body
  std::string body;
};

struct ServiceReply {
  int status = 0;
  net::HeaderList headers;
  std::string body;
};

struct CallPlan {
  std::string service;  // for messages: "the instance metadata service"
  // Made anew for each attempt, so that it is signed with the time of sending and reads token files
  // as they are then.
  std::function<Result<ServiceRequest>()> make;
  // Whether an answer is worth another attempt; null: 408, 429, 500, 502, 503 and 504 are.
  std::function<bool(const ServiceReply&)> retries;
  int attempts = 5;
  int unanswered_attempts = 4;  // of those, how many may end without any answer
  Duration shortest_pause = std::chrono::milliseconds(200);  // doubles, with jitter
  Duration longest_pause = std::chrono::seconds(5);
};

bool IsWorthRepeating(int http_status);

struct UrlParts {
  std::string scheme;
  std::string host;  // with its port unless that is the scheme's own
  std::string path;  // "" or "/..", without query
};
// kInvalidArgument for what is no http(s) URL.
Result<UrlParts> SplitUrl(const std::string& url);

// All on the executor of the transport. Destroy it when nothing is in flight or after the executor
// has stopped.
class ServiceCalls {
 public:
  using OnReply = std::move_only_function<void(Result<ServiceReply>)>;

  ServiceCalls(net::HttpTransport& transport, uint64_t seed);
  ~ServiceCalls();
  ServiceCalls(const ServiceCalls&) = delete;
  ServiceCalls& operator=(const ServiceCalls&) = delete;

  // `on_reply` runs once, never inside this call, with the last answer, whatever its status, or
  // with kUnavailable when there was none, or with what `make` said.
  void Call(CallPlan plan, OnReply on_reply);
  uint64_t requests() const { return requests_; }

 private:
  class Exchange;
  void Try(uint64_t id);
  void End(uint64_t id, Result<ServiceReply> result);

  net::HttpTransport& transport_;
  const uint64_t seed_;
  uint64_t draws_ = 0;
  uint64_t last_id_ = 0;
  uint64_t requests_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace forebay::store::s3
