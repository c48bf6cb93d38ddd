// The network in virtual time: an HttpTransport in front of an object server that exists as a
// function. Latency to the first byte is drawn for each request; faults are drawn too, by their
// probabilities. What is delivered is right to the last byte unless a fault says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/random.h"
#include "net/http.h"
#include "sim/latency.h"

namespace forebay::sim {

// Each the probability that a request meets it.
struct FaultRates {
  double refuse = 0;       // the connection is refused
  double reset = 0;        // ... is reset in the middle of the body
  double stall = 0;        // the body stops in the middle, for ever
  double lost = 0;         // no answer comes at all
  double slow_down = 0;    // 503 with its XML
  double wrong_range = 0;  // Content-Range and body of another range
  double whole = 0;        // 200 with another body in place of the range
  double short_body = 0;   // fewer bytes than promised, then the end
  double other_etag = 0;   // the right range under another version's ETag
  double hang = 0;         // the answer comes 20 s late
};

class SimTransport : public net::HttpTransport {
 public:
  struct Options {
    uint64_t seed = 1;
    Lognormal latency;
    uint64_t object_bytes = 0;
    std::string etag = "sim";
    // Byte `offset` of the object with this URL path.
    std::function<std::byte(const std::string& path, uint64_t offset)> byte_at;
  };
  SimTransport(Executor& executor, Options options)
      : executor_(executor), options_(std::move(options)), random_(options_.seed) {}

  RequestId Start(net::HttpRequest request, net::HttpHandler* handler) override;
  void Cancel(RequestId id) override;
  void Close(Task on_closed) override;
  Executor& executor() override { return executor_; }

  void set_latency_factor(double factor) { factor_ = factor; }
  void set_faults(const FaultRates& rates) { rates_ = rates; }
  // The server takes so many requests a second, `burst` of them at once; the rest get 503 SlowDown.
  // 0: any number.
  void set_request_limit(double per_s, double burst = 10);
  uint64_t requests() const { return requests_; }
  uint64_t faults() const { return faults_; }        // requests that met a drawn fault
  uint64_t throttled() const { return throttled_; }  // ... that were beyond the limit
  size_t in_flight() const { return in_flight_.size(); }

 private:
  enum class Fault : uint8_t {
    kNone,
    kRefuse,
    kReset,
    kStall,
    kLost,
    kSlowDown,
    kWrongRange,
    kWhole,
    kShortBody,
    kOtherEtag,
    kHang
  };
  struct Exchange {
    net::HttpRequest request;
    net::HttpHandler* handler = nullptr;
    Fault fault = Fault::kNone;
    Time started{};
    Duration first_byte{};
    uint64_t body_bytes = 0;
    Executor::TimerId timer = 0;
  };

  Fault DrawFault();
  bool OverLimit();
  void Answer(RequestId id);
  void AnswerRange(RequestId id, Exchange& exchange);
  void Finish(RequestId id, Status status);
  void At(RequestId id, Duration after, std::function<void()> what);

  Executor& executor_;
  Options options_;
  Random random_;
  FaultRates rates_;
  double factor_ = 1;
  RequestId next_id_ = 1;
  uint64_t requests_ = 0;
  uint64_t faults_ = 0;
  uint64_t throttled_ = 0;
  double limit_per_s_ = 0;
  double limit_burst_ = 0;
  double limit_tokens_ = 0;
  Time limit_filled_{};
  std::unordered_map<RequestId, Exchange> in_flight_;
  Task on_closed_;
};

}  // namespace forebay::sim
