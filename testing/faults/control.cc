#include "testing/faults/control.h"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <array>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "testing/faults/answer.h"
#include "testing/faults/http_head.h"

namespace forebay::faults {
namespace {

constexpr size_t kMaxBodyBytes = 4 << 20;
constexpr std::chrono::seconds kPatience{10};

std::string ErrorJson(std::string_view message) {
  return nlohmann::json({{"error", message}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class ControlExchange : public std::enable_shared_from_this<ControlExchange> {
 public:
  ControlExchange(sys::EventLoop& loop, Fd client, ControlHandler handler)
      : loop_(loop), client_(std::move(client)), handler_(std::move(handler)) {}

  // The watch and the timer keep the object alive.
  void Start() {
    const Status watched = loop_.Watch(client_.get(), EPOLLIN,
                                       [self = shared_from_this()](uint32_t) { self->Pump(); });
    if (!watched.ok()) return;
    timer_ = loop_.PostAt(loop_.Now() + kPatience, [self = shared_from_this()] {
      self->timer_ = 0;
      self->Close();
    });
  }

 private:
  void Close() {
    if (!client_.valid()) return;
    const auto keep = shared_from_this();
    if (timer_ != 0) loop_.CancelTimer(std::exchange(timer_, 0));
    loop_.Unwatch(client_.get());
    client_.Close();
  }

  void Pump() {
    if (out_.empty() && !Read()) return;
    const Transfer sent = Send(client_.get(), std::string_view(out_).substr(sent_), false);
    sent_ += sent.bytes;
    const bool over = sent_ == out_.size() || (sent.io != Io::kOk && sent.io != Io::kWouldBlock);
    if (over) return Close();
    if (!loop_.ChangeWatch(client_.get(), EPOLLOUT).ok()) Close();
  }

  // True once out_ holds the answer.
  bool Read() {
    std::array<char, 16 * 1024> buffer;
    const Transfer got = Receive(client_.get(), buffer.data(), buffer.size());
    if (got.io == Io::kWouldBlock) return false;
    if (got.io != Io::kOk) {
      Close();
      return false;
    }
    in_.append(buffer.data(), got.bytes);
    const auto end = FindHeadEnd(in_);
    if (!end.ok()) return Answer(400, ErrorJson(end.status().message()));
    if (!*end) return false;
    const auto head = ParseRequestHead(std::string_view(in_).substr(0, **end));
    if (!head.ok()) return Answer(400, ErrorJson(head.status().message()));
    if (head->framing == Framing::kChunked || head->content_length > kMaxBodyBytes) {
      return Answer(400, ErrorJson("the body must have a Content-Length of at most 4 MiB"));
    }
    if (in_.size() - **end < head->content_length) return false;
    const auto body = std::string_view(in_).substr(**end, head->content_length);
    auto reply = handler_(head->method, head->target, body);
    return Answer(reply.status, std::move(reply.json));
  }

  bool Answer(int status, std::string json) {
    json += '\n';
    out_ = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        status, ReasonOf(status), json.size(), json);
    return true;
  }

  sys::EventLoop& loop_;
  Fd client_;
  ControlHandler handler_;
  Executor::TimerId timer_ = 0;
  std::string in_;
  std::string out_;
  size_t sent_ = 0;
};

uint64_t QueryNumber(std::string_view target, std::string_view name, uint64_t otherwise) {
  const size_t query = target.find('?');
  if (query == std::string_view::npos) return otherwise;
  target.remove_prefix(query + 1);
  while (!target.empty()) {
    const size_t end = std::min(target.find('&'), target.size());
    const auto pair = target.substr(0, end);
    target.remove_prefix(std::min(end + 1, target.size()));
    if (!pair.starts_with(name) || pair.size() <= name.size() || pair[name.size()] != '=') continue;
    uint64_t value = otherwise;
    std::from_chars(pair.data() + name.size() + 1, pair.data() + pair.size(), value);
    return value;
  }
  return otherwise;
}

}  // namespace

void ServeControl(sys::EventLoop& loop, Fd client, ControlHandler handler) {
  std::make_shared<ControlExchange>(loop, std::move(client), std::move(handler))->Start();
}

Server::ControlReply Server::Control(std::string_view method, std::string_view target,
                                     std::string_view body) {
  auto path = target.substr(0, target.find('?'));
  if (!path.starts_with(kControlPath)) return {404, ErrorJson("no such control")};
  path.remove_prefix(kControlPath.size());
  const bool get = method == "GET";
  if (get && path == "/stats") {
    return {200, shared_.stats->ToJson(shared_.plan->latency_scale())};
  }
  if (get && path == "/log") {
    return {200, shared_.stats->LogToJson(QueryNumber(target, "after", 0),
                                          QueryNumber(target, "limit", UINT64_MAX))};
  }
  if (method != "POST") return {404, ErrorJson("no such control")};
  if (path == "/rules") {
    const Status applied = shared_.plan->Apply(body, Plan::Clock::now());
    return applied.ok() ? ControlReply{200, "{\"ok\":true}"}
                        : ControlReply{400, ErrorJson(applied.message())};
  }
  if (path == "/reset") {
    shared_.stats->Reset();
    shared_.plan->Reset(Plan::Clock::now());
    return {200, "{\"ok\":true}"};
  }
  if (path == "/refuse") return ControlRefuse(body);
  return {404, ErrorJson("no such control")};
}

Server::ControlReply Server::ControlRefuse(std::string_view body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("for") || !json["for"].is_string()) {
    return {400, ErrorJson("expected {\"for\": \"2s\"}")};
  }
  const auto seconds = ParseDuration(json["for"].get<std::string>());
  if (!seconds.ok()) return {400, ErrorJson(seconds.status().message())};
  const auto span =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*seconds));
  if (main_loop().InThread()) {
    RefuseFor(span);
  } else {
    main_loop().Post([this, span] { RefuseFor(span); });
  }
  return {200, "{\"ok\":true}"};
}

}  // namespace forebay::faults
