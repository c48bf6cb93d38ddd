#include "testing/faults/connection.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "testing/faults/server.h"

namespace forebay::faults {
namespace {

constexpr int kRoundsPerPump = 8;
constexpr size_t kMaxUpstreamBacklog = 256 * 1024;
constexpr double kLinger_s = 2;

Duration Seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace

Connection::Connection(Shard& shard, Fd client)
    : shard_(shard), client_(std::move(client)), touched_at_(shard.loop().Now()) {
  shard_.shared().stats->ConnectionOpened();
}

Connection::~Connection() { shard_.shared().stats->ConnectionClosed(); }

void Connection::Start() {
  SetNoDelay(client_.get());
  Pump();
}

// ---------------------------------------------------------------- events and timers

void Connection::Pump() {
  for (int round = 0; round < kRoundsPerPump; ++round) {
    if (state_ == State::kClosed) return;
    want_ = {};
    bool progress = false;
    if (state_ == State::kHead) {
      progress = ReadHead();
    } else if (state_ == State::kExchange) {
      progress = PumpExchange();
    } else {
      progress = PumpLinger();
    }
    if (state_ == State::kClosed) return;
    if (!progress) return UpdateWatches();
    Touch();
  }
  // Others have their turn first.
  UpdateWatches();
  if (std::exchange(pump_posted_, true)) return;
  shard_.loop().Post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->pump_posted_ = false;
      self->Pump();
    }
  });
}

void Connection::OnClientEvents(uint32_t events) {
  // A client that closes its side has lost interest, unless it still has to be read.
  const bool gone =
      (events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLRDHUP) != 0 && !want_.client_in);
  if (gone && state_ == State::kExchange) return Close("client_gone");
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Close("client_gone");
  Pump();
}

void Connection::OnUpstreamEvents(uint32_t events) {
  const bool broken = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (broken && !want_.upstream_in && !want_.upstream_out) {
    // Nothing can be done about it now, and epoll would say it again and again.
    shard_.loop().Unwatch(upstream_.get());
    upstream_watched_ = 0;
    return;
  }
  Pump();
}

void Connection::UpdateWatches() {
  uint32_t events = EPOLLRDHUP;
  if (want_.client_in) events |= EPOLLIN;
  if (want_.client_out) events |= EPOLLOUT;
  UpdateWatch(client_.get(), events, client_watched_, true);
  if (state_ == State::kClosed || !upstream_.valid()) return;
  events = 0;
  if (want_.upstream_in) events |= EPOLLIN;
  if (want_.upstream_out) events |= EPOLLOUT;
  UpdateWatch(upstream_.get(), events, upstream_watched_, false);
}

void Connection::UpdateWatch(int fd, uint32_t events, uint32_t& watched, bool client) {
  if (events == watched) return;
  Status status;
  if (events == 0) {
    shard_.loop().Unwatch(fd);
  } else if (watched != 0) {
    status = shard_.loop().ChangeWatch(fd, events);
  } else if (client) {
    status = shard_.loop().Watch(fd, events, [this](uint32_t e) { OnClientEvents(e); });
  } else {
    status = shard_.loop().Watch(fd, events, [this](uint32_t e) { OnUpstreamEvents(e); });
  }
  watched = events;
  if (!status.ok()) {
    watched = 0;
    Close("server_failed");
  }
}

void Connection::WakeAt(Time at) {
  if (timer_ != 0 && timer_at_ == at) return;
  CancelWake();
  timer_at_ = at;
  timer_ = shard_.loop().PostAt(at, [this] {
    timer_ = 0;
    Pump();
  });
}

void Connection::CancelWake() {
  if (timer_ != 0) shard_.loop().CancelTimer(std::exchange(timer_, 0));
}

void Connection::CheckDeadline(Time now) {
  if (state_ == State::kClosed || timer_ != 0) return;  // a fault's wait is no stall
  const Limits& limits = shard_.shared().limits;
  const double waited = std::chrono::duration<double>(now - touched_at_).count();
  if (state_ == State::kHead && waited > (in_.empty() ? limits.idle_s : limits.head_s)) {
    Close("idle");
  } else if (state_ == State::kLinger && waited > kLinger_s) {
    Close("complete");
  } else if (state_ == State::kExchange && !has_answer_ && waited > limits.origin_s) {
    DropUpstream();
    discard_request_body_ = true;
    SetAnswer(MakeErrorAnswer(504, "GatewayTimeout", "The origin did not answer in time.", request_,
                              decision_.number),
              false);
    Pump();
  } else if (state_ == State::kExchange && has_answer_ && waited > limits.transfer_s) {
    SetResetOnClose(client_.get());
    Close("timeout");
  }
}

void Connection::Close(const char* outcome) {
  if (state_ == State::kClosed) return;
  if (state_ == State::kExchange) Record(outcome);
  state_ = State::kClosed;
  CancelWake();
  DropUpstream();
  if (client_watched_ != 0) shard_.loop().Unwatch(client_.get());
  body_.reset();
  client_.Close();
  shard_.Retire(this);
}

void Connection::StartLinger() {
  // Closing with unread bytes would reset the connection and take the answer away from the client.
  state_ = State::kLinger;
  ::shutdown(client_.get(), SHUT_WR);
}

bool Connection::PumpLinger() {
  auto& scratch = shard_.scratch();
  const Transfer got = Receive(client_.get(), scratch.data(), scratch.size());
  if (got.io == Io::kWouldBlock) {
    want_.client_in = true;
    return false;
  }
  if (got.io != Io::kOk) Close("complete");
  // What arrives does not prolong the wait.
  return false;
}

// ---------------------------------------------------------------- the request

bool Connection::ReadHead() {
  while (in_.starts_with("\r\n")) in_.erase(0, 2);  // as RFC 9112 2.2 asks
  const auto end = FindHeadEnd(in_);
  if (!end.ok()) {
    RefuseHead(end.status());
    return true;
  }
  if (*end) {
    StartExchange(**end);
    return true;
  }
  auto& scratch = shard_.scratch();
  const Transfer got = Receive(client_.get(), scratch.data(), scratch.size());
  if (got.io == Io::kWouldBlock) {
    want_.client_in = true;
    return false;
  }
  if (got.io != Io::kOk) {
    Close("client_gone");
    return false;
  }
  in_.append(scratch.data(), got.bytes);
  return true;
}

void Connection::RefuseHead(const Status& why) {
  state_ = State::kExchange;
  head_at_ = release_at_ = shard_.loop().Now();
  request_ = RequestHead{};
  decision_ = Decision{};
  record_ = RequestRecord{};
  record_.method = "invalid";
  discard_request_body_ = true;
  request_framer_ = BodyFramer(Framing::kUntilClose, 0);
  in_.clear();
  SetAnswer(MakeErrorAnswer(400, "BadRequest", why.message(), request_, 0), false);
}

void Connection::StartExchange(size_t head_bytes) {
  auto parsed = ParseRequestHead(std::string_view(in_).substr(0, head_bytes));
  if (!parsed.ok()) return RefuseHead(parsed.status());
  state_ = State::kExchange;
  request_ = *std::move(parsed);
  in_.erase(0, head_bytes);
  head_at_ = shard_.loop().Now();
  request_framer_ = BodyFramer(request_.framing, request_.content_length);
  if (request_framer_.done() && !in_.empty()) {
    return RefuseHead({Code::kInvalidArgument, "pipelined requests are not supported"});
  }
  const Field* range = FindField(request_.fields, "range");
  decision_ =
      shard_.shared().plan->Decide({request_.method, request_.target, range != nullptr}, head_at_);
  release_at_ = head_at_ + Seconds(decision_.first_byte_s);
  record_ = RequestRecord{.number = decision_.number,
                          .method = request_.method,
                          .target = request_.target.substr(0, 2048),
                          .range = range == nullptr ? "" : range->value,
                          .has_latency = decision_.has_latency,
                          .drawn_ms = decision_.first_byte_s * 1000,
                          .faults = decision_.names};
  AskOrigin();
}

void Connection::AskOrigin() {
  const auto answer_error = [&](int status, std::string_view code, std::string_view message) {
    SetAnswer(MakeErrorAnswer(status, code, message, request_, decision_.number), true);
  };
  discard_request_body_ = true;
  const std::string_view target = request_.target;
  if (target.starts_with(kControlPath) &&
      (target.size() == kControlPath.size() || target[kControlPath.size()] == '/')) {
    answer_error(403, "AccessDenied", "The control port is another one.");
  } else if (request_.method == "CONNECT") {
    answer_error(501, "NotImplemented", "CONNECT is not supported.");
  } else if (decision_.error_in_200) {
    answer_error(200, decision_.error_code, "An injected error.");
  } else if (decision_.status != 0) {
    answer_error(decision_.status, decision_.error_code, "An injected error.");
  } else if (shard_.shared().directory != nullptr) {
    SetAnswer(shard_.shared().directory->Serve(request_, decision_.number, decision_.ignore_range),
              true);
  } else {
    discard_request_body_ = false;
    StartUpstream(false);
  }
}

bool Connection::PumpExchange() {
  bool progress = PumpOut();
  // A step may have ended the exchange, or everything.
  const auto step = [&](bool (Connection::*pump)()) {
    if (state_ == State::kExchange) progress = (this->*pump)() || progress;
  };
  step(&Connection::PumpRequestBody);
  step(&Connection::PumpUpstreamSend);
  step(&Connection::PumpUpstreamHead);
  step(&Connection::PumpAnswer);
  return progress;
}

bool Connection::PumpOut() {
  if (out_.empty()) return false;
  const Transfer sent = Send(client_.get(), std::string_view(out_).substr(out_sent_), false);
  if (sent.io == Io::kFailed) {
    Close("client_gone");
    return false;
  }
  out_sent_ += sent.bytes;
  if (out_sent_ == out_.size()) {
    out_.clear();
    out_sent_ = 0;
  } else {
    want_.client_out = true;
  }
  return sent.bytes > 0;
}

bool Connection::TakeRequestBody() {
  const auto step = request_framer_.Consume(in_, UINT64_MAX);
  if (!step.ok()) return false;
  if (!discard_request_body_) upstream_out_.append(in_, 0, step->raw);
  request_body_taken_ = request_body_taken_ || step->raw > 0;
  in_.erase(0, step->raw);
  // Pipelined: too late to refuse, so this answer is the last.
  if (request_framer_.done() && !in_.empty()) keep_alive_ = request_.keep_alive = false;
  return true;
}

bool Connection::PumpRequestBody() {
  if (request_framer_.done()) return false;
  if (upstream_out_.size() - upstream_sent_ > kMaxUpstreamBacklog) return false;
  bool progress = false;
  if (in_.empty()) {
    auto& scratch = shard_.scratch();
    const Transfer got = Receive(client_.get(), scratch.data(), scratch.size());
    if (got.io == Io::kWouldBlock) {
      want_.client_in = true;
      return false;
    }
    if (got.io != Io::kOk) {
      Close("client_gone");
      return false;
    }
    in_.append(scratch.data(), got.bytes);
    progress = true;
  }
  if (TakeRequestBody()) return true;
  // The rest of the connection means nothing any more.
  request_framer_ = BodyFramer(Framing::kUntilClose, 0);
  discard_request_body_ = true;
  in_.clear();
  DropUpstream();
  if (has_answer_) {
    keep_alive_ = false;
  } else {
    SetAnswer(MakeErrorAnswer(400, "BadRequest", "The chunks of the body are broken.", request_,
                              decision_.number),
              false);
  }
  return progress;
}

// ---------------------------------------------------------------- the upstream

void Connection::StartUpstream(bool fresh) {
  DropUpstream();
  auto upstream = fresh ? shard_.ConnectUpstream() : shard_.TakeUpstream();
  if (!upstream.ok()) return UpstreamFailed("no connection");
  upstream_ = std::move(upstream->fd);
  upstream_reused_ = upstream->reused;
  RequestHead head = request_;
  RemoveHopFields(head.fields);
  // A signed range has to stay; the answer is widened instead.
  if (decision_.ignore_range && !IsSignedHeader(request_, "range")) {
    RemoveFields(head.fields, "range");
  }
  upstream_out_ = FormatRequestHead(head);
}

void Connection::DropUpstream() {
  if (upstream_watched_ != 0) shard_.loop().Unwatch(upstream_.get());
  upstream_watched_ = 0;
  upstream_.Close();
  upstream_out_.clear();
  upstream_sent_ = 0;
  upstream_in_.clear();
  upstream_write_broken_ = false;
  upstream_reused_ = false;
}

void Connection::UpstreamFailed(const char* what) {
  const bool replayable = upstream_reused_ && upstream_in_.empty() && !request_body_taken_;
  if (replayable) return StartUpstream(true);  // an idle connection that the upstream had closed
  DropUpstream();
  discard_request_body_ = true;
  SetAnswer(MakeErrorAnswer(502, "BadGateway", fmt::format("The origin failed: {}.", what),
                            request_, decision_.number),
            false);
}

bool Connection::PumpUpstreamSend() {
  if (!upstream_.valid() || upstream_sent_ == upstream_out_.size()) return false;
  if (upstream_write_broken_) {
    upstream_out_.clear();
    upstream_sent_ = 0;
    return false;
  }
  const Transfer sent =
      Send(upstream_.get(), std::string_view(upstream_out_).substr(upstream_sent_), false);
  if (sent.io == Io::kWouldBlock) {
    want_.upstream_out = true;
    return false;
  }
  if (sent.io != Io::kOk) {
    upstream_write_broken_ = true;  // it may have answered before it closed
    return true;
  }
  upstream_sent_ += sent.bytes;
  if (upstream_sent_ == upstream_out_.size()) {
    upstream_out_.clear();
    upstream_sent_ = 0;
  }
  return true;
}

bool Connection::PumpUpstreamHead() {
  if (!upstream_.valid() || has_answer_) return false;
  auto& scratch = shard_.scratch();
  const Transfer got = Receive(upstream_.get(), scratch.data(), scratch.size());
  if (got.io == Io::kWouldBlock) {
    want_.upstream_in = true;
    return false;
  }
  if (got.io != Io::kOk) {
    UpstreamFailed(got.io == Io::kEnd ? "it closed the connection" : "connection lost");
    return true;
  }
  upstream_in_.append(scratch.data(), got.bytes);
  while (upstream_.valid() && !has_answer_) {
    const auto end = FindHeadEnd(upstream_in_);
    if (!end.ok()) {
      UpstreamFailed("its head is too large");
    } else if (!*end) {
      break;
    } else {
      TakeUpstreamHead(**end);
    }
  }
  return true;
}

void Connection::TakeUpstreamHead(size_t head_bytes) {
  const std::string text = upstream_in_.substr(0, head_bytes);
  auto head = ParseResponseHead(text, request_.method);
  if (!head.ok() || head->status == 101) {
    upstream_reused_ = false;  // asking again would not help
    return UpstreamFailed(head.ok() ? "it switched protocols" : head.status().message().c_str());
  }
  upstream_in_.erase(0, head_bytes);
  if (head->status < 200) {
    out_ += text;  // interim answers are neither held nor changed
    return;
  }
  RemoveHopFields(head->fields);
  upstream_keep_alive_ = head->keep_alive;
  const bool delimited = head->framing != Framing::kUntilClose;
  auto body = std::make_unique<UpstreamBody>(upstream_.get(), std::exchange(upstream_in_, {}),
                                             BodyFramer(head->framing, head->content_length),
                                             shard_.pipes());
  upstream_body_ = body.get();
  Answer answer{*std::move(head), std::move(body)};
  if (decision_.ignore_range) WidenPartialAnswer(answer);
  SetAnswer(std::move(answer), delimited);
}

}  // namespace forebay::faults
