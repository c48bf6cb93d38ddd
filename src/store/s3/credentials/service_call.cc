#include "store/s3/credentials/service_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/random.h"

namespace forebay::store::s3 {
namespace {

constexpr size_t kMaxAnswer = 256 * 1024;
constexpr std::chrono::seconds kWholeExchange(20);

}  // namespace

bool IsWorthRepeating(int http_status) {
  switch (http_status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

Result<UrlParts> SplitUrl(const std::string& url) {
  const size_t colon = url.find("://");
  UrlParts parts;
  if (colon != url.npos) {
    parts.scheme = url.substr(0, colon);
    const std::string rest = url.substr(colon + 3);
    const size_t end = rest.find_first_of("/?#");
    parts.host = rest.substr(0, end);
    if (end != rest.npos && rest[end] == '/') {
      parts.path = rest.substr(end, rest.find_first_of("?#", end) - end);
    }
  }
  const bool known = parts.scheme == "http" || parts.scheme == "https";
  if (!known || parts.host.empty() || parts.host.find('@') != parts.host.npos) {
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' is no http or https URL", HideUserinfo(url)));
  }
  const std::string own_port = parts.scheme == "http" ? ":80" : ":443";
  if (parts.host.ends_with(own_port)) parts.host.resize(parts.host.size() - own_port.size());
  return parts;
}

class ServiceCalls::Exchange final : public net::HttpHandler {
 public:
  Exchange(ServiceCalls& calls, uint64_t id, CallPlan how, OnReply then)
      : plan(std::move(how)), on_reply(std::move(then)), calls_(calls), id_(id) {}

  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override {
    reply_.status = head.status;
    reply_.headers = head.headers;
    reply_.body.clear();
    return net::BodyTarget{.text = &reply_.body, .text_limit = kMaxAnswer};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status status, const net::HttpTiming&) override {
    ++attempts_;
    if (!status.ok()) {
      // A certificate that does not verify will not do so a second later.
      const bool final = status.code() == Code::kInvalidArgument;
      if (!final && attempts_ < std::min(plan.attempts, plan.unanswered_attempts)) {
        Repeat();
      } else {
        calls_.End(id_, Status(final ? Code::kPermissionDenied : Code::kUnavailable,
                               fmt::format("{} does not answer: {}{}", plan.service,
                                           status.message(), Times())));
      }
      return;
    }
    const bool again = plan.retries ? plan.retries(reply_) : IsWorthRepeating(reply_.status);
    if (again && attempts_ < plan.attempts) {
      Repeat();
    } else {
      calls_.End(id_, std::move(reply_));
    }
  }

  CallPlan plan;
  OnReply on_reply;
  ServiceRequest request;

 private:
  std::string Times() const {
    return attempts_ > 1 ? fmt::format(" ({} attempts)", attempts_) : "";
  }
  // Half of the pause is sure, so that a busy service gets some; the other half spreads those that
  // it turned away together.
  void Repeat() {
    const int doublings = std::min(attempts_ - 1, 20);
    const Duration pause =
        std::min(plan.longest_pause, plan.shortest_pause * (int64_t{1} << doublings));
    const double part = 0.5 + 0.5 * Random(DeriveKey(calls_.seed_, ++calls_.draws_)).NextDouble();
    Executor& executor = calls_.transport_.executor();
    executor.PostAt(executor.Now() + std::chrono::duration_cast<Duration>(pause * part),
                    [this] { calls_.Try(id_); });
  }

  ServiceCalls& calls_;
  const uint64_t id_;
  ServiceReply reply_;
  int attempts_ = 0;
};

ServiceCalls::ServiceCalls(net::HttpTransport& transport, uint64_t seed)
    : transport_(transport), seed_(seed) {}

ServiceCalls::~ServiceCalls() = default;

void ServiceCalls::Call(CallPlan plan, OnReply on_reply) {
  FB_ASSERT(transport_.executor().InThread());
  const uint64_t id = ++last_id_;
  exchanges_[id] = std::make_unique<Exchange>(*this, id, std::move(plan), std::move(on_reply));
  transport_.executor().Post([this, id] { Try(id); });
}

void ServiceCalls::Try(uint64_t id) {
  Exchange& exchange = *exchanges_.at(id);
  Result<ServiceRequest> made = exchange.plan.make();
  if (!made.ok()) {
    End(id, std::move(made).status());
    return;
  }
  exchange.request = *std::move(made);
  net::HttpRequest http = std::move(exchange.request.http);
  if (!exchange.request.body.empty()) http.body = {AsBytes(exchange.request.body)};
  http.headers.emplace_back("User-Agent", "forebay/" FOREBAY_VERSION);
  http.deadline = std::min(http.deadline, transport_.executor().Now() + kWholeExchange);
  ++requests_;
  transport_.Start(std::move(http), &exchange);
}

void ServiceCalls::End(uint64_t id, Result<ServiceReply> result) {
  auto node = exchanges_.extract(id);
  const std::unique_ptr<Exchange> exchange = std::move(node.mapped());
  exchange->on_reply(std::move(result));
}

}  // namespace forebay::store::s3
