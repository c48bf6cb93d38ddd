#include "sim/sim_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace forebay::sim {
namespace {

constexpr auto kRoundTrip = std::chrono::milliseconds(1);
constexpr Duration kHang = std::chrono::seconds(20);

struct Range {
  uint64_t first = 0;
  uint64_t end = 0;
};

Range RangeOf(const net::HttpRequest& request, uint64_t object_bytes) {
  const std::string value(net::FindHeader(request.headers, "range"));
  constexpr size_t kPrefix = 6;  // "bytes="
  if (value.size() <= kPrefix) return {0, object_bytes};
  char* dash = nullptr;
  const uint64_t first = std::strtoull(value.c_str() + kPrefix, &dash, 10);
  const uint64_t last = std::strtoull(dash + 1, nullptr, 10);
  return {first, std::min(object_bytes, last + 1)};
}

std::string PathOf(const std::string& url) { return url.substr(url.rfind('/') + 1); }

}  // namespace

SimTransport::Fault SimTransport::DrawFault() {
  const std::array rates = {rates_.refuse,     rates_.reset,       rates_.stall, rates_.lost,
                            rates_.slow_down,  rates_.wrong_range, rates_.whole, rates_.short_body,
                            rates_.other_etag, rates_.hang};
  double at = random_.NextDouble();
  for (size_t i = 0; i < rates.size(); ++i) {
    if (at < rates[i]) return static_cast<Fault>(i + 1);
    at -= rates[i];
  }
  return Fault::kNone;
}

void SimTransport::set_request_limit(double per_s, double burst) {
  limit_per_s_ = per_s;
  limit_burst_ = limit_tokens_ = burst;
  limit_filled_ = executor_.Now();
}

bool SimTransport::OverLimit() {
  if (limit_per_s_ == 0) return false;
  const Time now = executor_.Now();
  const double passed_s = std::chrono::duration<double>(now - limit_filled_).count();
  limit_tokens_ = std::min(limit_burst_, limit_tokens_ + passed_s * limit_per_s_);
  limit_filled_ = now;
  if (limit_tokens_ < 1) return true;
  limit_tokens_ -= 1;
  return false;
}

net::HttpTransport::RequestId SimTransport::Start(net::HttpRequest request,
                                                  net::HttpHandler* handler) {
  const RequestId id = next_id_++;
  ++requests_;
  Exchange& exchange = in_flight_[id];
  exchange.handler = handler;
  exchange.fault = DrawFault();
  faults_ += exchange.fault != Fault::kNone ? 1 : 0;
  if (OverLimit()) {
    exchange.fault = Fault::kSlowDown;
    ++throttled_;
  }
  exchange.started = executor_.Now();
  const Duration first_byte_timeout = request.first_byte_timeout;
  exchange.request = std::move(request);
  switch (exchange.fault) {
    case Fault::kRefuse:
      At(id, kRoundTrip, [this, id] { Finish(id, Status(Code::kUnavailable, "refused")); });
      break;
    case Fault::kHang:
      if (first_byte_timeout > kHang) {
        At(id, kHang, [this, id] { Answer(id); });
        break;
      }
      [[fallthrough]];
    case Fault::kLost:
      At(id, first_byte_timeout,
         [this, id] { Finish(id, Status(Code::kUnavailable, "no first byte in time")); });
      break;
    default: {
      const auto drawn =
          std::chrono::duration_cast<Duration>(options_.latency.Draw(random_) * factor_);
      At(id, drawn, [this, id] { Answer(id); });
    }
  }
  return id;
}

void SimTransport::At(RequestId id, Duration after, std::function<void()> what) {
  in_flight_[id].timer = executor_.PostAt(executor_.Now() + after, std::move(what));
}

void SimTransport::Answer(RequestId id) {
  Exchange& exchange = in_flight_[id];
  exchange.timer = 0;
  exchange.first_byte = executor_.Now() - exchange.started;
  if (exchange.fault != Fault::kSlowDown) {
    AnswerRange(id, exchange);
    return;
  }
  const std::string body = "<Error><Code>SlowDown</Code><Message>Reduce</Message></Error>";
  net::HttpHead head;
  head.status = 503;
  head.content_length = static_cast<int64_t>(body.size());
  head.headers = {{"Content-Length", std::to_string(body.size())}, {"x-amz-request-id", "SIM"}};
  const Result<net::BodyTarget> target = exchange.handler->OnHead(head);
  if (target.ok() && target->text != nullptr) {
    *target->text = body;
    exchange.body_bytes = body.size();
    exchange.handler->OnBody(AsBytes(body));
  }
  Finish(id, target.ok() ? Status() : target.status());
}

void SimTransport::AnswerRange(RequestId id, Exchange& exchange) {
  Range range = RangeOf(exchange.request, options_.object_bytes);
  const uint64_t wanted = range.end - range.first;
  net::HttpHead head;
  head.status = exchange.fault == Fault::kWhole ? 200 : 206;
  head.content_length = static_cast<int64_t>(wanted);
  if (exchange.fault == Fault::kWrongRange) range.first = (range.first + 1) % 64;
  const std::string other = exchange.fault == Fault::kOtherEtag ? fmt::format("-{}", id) : "";
  head.headers = {{"ETag", "\"" + options_.etag + other + "\""},
                  {"Content-Length", std::to_string(wanted)},
                  {"x-amz-request-id", fmt::format("SIM{}", id)}};
  if (head.status == 206) {
    head.headers.emplace_back("Content-Range",
                              fmt::format("bytes {}-{}/{}", range.first, range.first + wanted - 1,
                                          options_.object_bytes));
  }
  const bool is_head = exchange.request.method == "HEAD";
  if (is_head) head.status = 200;
  const Result<net::BodyTarget> target = exchange.handler->OnHead(head);
  if (!target.ok() || is_head) {
    Finish(id, target.ok() ? Status() : target.status());
    return;
  }
  const bool cut = exchange.fault == Fault::kReset || exchange.fault == Fault::kStall ||
                   exchange.fault == Fault::kShortBody;
  uint64_t left = cut ? random_.NextBelow(wanted) : wanted;
  uint64_t at = range.first;
  const std::string path = PathOf(exchange.request.url);
  for (const MutableBytes piece : target->pieces) {
    const uint64_t n = std::min<uint64_t>(left, piece.size());
    for (uint64_t i = 0; i < n; ++i) piece[i] = options_.byte_at(path, at + i);
    exchange.body_bytes += n;
    if (n > 0) exchange.handler->OnBody(piece.first(n));
    at += n;
    left -= n;
  }
  if (exchange.fault == Fault::kStall) {
    At(id, exchange.request.stall_timeout,
       [this, id] { Finish(id, Status(Code::kUnavailable, "the body stalled")); });
    return;
  }
  Finish(id, cut ? Status(Code::kUnavailable, "the connection ended early") : Status());
}

void SimTransport::Finish(RequestId id, Status status) {
  auto node = in_flight_.extract(id);
  executor_.CancelTimer(node.mapped().timer);
  net::HttpTiming timing;
  timing.total = executor_.Now() - node.mapped().started;
  timing.first_byte = node.mapped().first_byte;
  timing.body_bytes = node.mapped().body_bytes;
  node.mapped().handler->OnDone(std::move(status), timing);
  if (in_flight_.empty() && on_closed_) std::exchange(on_closed_, nullptr)();
}

void SimTransport::Cancel(RequestId id) {
  const auto it = in_flight_.find(id);
  if (it == in_flight_.end()) return;
  executor_.CancelTimer(it->second.timer);
  At(id, Duration{}, [this, id] { Finish(id, Status(Code::kCancelled, "cancelled")); });
}

void SimTransport::Close(Task on_closed) {
  on_closed_ = std::move(on_closed);
  std::vector<RequestId> ids;
  ids.reserve(in_flight_.size());
  for (const auto& [id, exchange] : in_flight_) ids.push_back(id);
  for (const RequestId id : ids) Cancel(id);
  if (ids.empty()) executor_.Post(std::exchange(on_closed_, nullptr));
}

}  // namespace forebay::sim
