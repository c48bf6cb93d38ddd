#include "net/lean/lean_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "net/detail/request.h"
#include "net/lean/connection.h"
#include "net/lean/exchange.h"
#include "net/lean/origin.h"

namespace forebay::net {
namespace {

using lean::Connection;
using lean::Exchange;
using lean::Origin;
using lean::Outcome;
using lean::Peer;

constexpr size_t kScratchBytes = 64 * 1024;
// Connections being made to one host at a time: enough to fill a pool within a few round trips,
// few enough that neither end is buried in handshakes.
constexpr size_t kMaxSetups = 64;
// Connections made in vain for one request before it fails, when the host has other addresses.
constexpr size_t kMaxSetupFailures = 3;
// Requests that go out together. Whoever answers one each time it is sent goes to sleep in between,
// and is woken each time, which costs the sender more than sending does. No more than are still in
// the cache when they are sent.
constexpr size_t kSendsAtOnce = 32;
constexpr size_t kMaxOrigins = 256;  // before those without use are forgotten
constexpr Duration kFinestCheck = std::chrono::milliseconds(1);
constexpr Duration kFinestIdleCheck = std::chrono::milliseconds(250);

bool IsIdempotent(std::string_view method) { return method == "GET" || method == "HEAD"; }

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class LeanTransport final : public HttpTransport, public lean::ConnectionOwner {
 public:
  LeanTransport(sys::EventLoop& loop, const LeanTransportOptions& options)
      : loop_(loop),
        options_(options),
        resolver_(loop, options.hosts != nullptr ? options.hosts : HostCache::OfProcess()),
        scratch_(kScratchBytes) {}
  ~LeanTransport() override;
  // Also on the way to the first https:// host: loading certificates takes its time.
  Status MakeTls() {
    if (tls_ == nullptr) {
      FB_ASSIGN_OR_RETURN(tls_, lean::TlsContext::Make(options_.ca_bundle, options_.verify_tls));
    }
    return {};
  }

  RequestId Start(HttpRequest request, HttpHandler* handler) override;
  void Cancel(RequestId id) override;
  void Close(Task on_closed) override;
  Executor& executor() override { return loop_; }

 private:
  void OnReady(Connection& connection) override;
  void OnSetupFailed(Connection& connection, Status status) override;
  void OnExchangeOver(Connection& connection, Exchange& exchange, Outcome outcome) override;
  void OnIdleLost(Connection& connection) override { CloseConnection(connection); }
  void ResumeLater(Connection& connection) override;
  MutableBytes scratch() override { return scratch_; }
  lean::HeadParser& parser() override { return parser_; }
  Time Now() override { return loop_.Now(); }

  // Exchanges. An id is the slot and how often it has been used, so that an old one finds nothing.
  Exchange& NewExchange(HttpRequest request, HttpHandler* handler);
  Exchange* Find(RequestId id);
  Status Prepare(Exchange& exchange);
  void WriteHead(Exchange& exchange);
  void Send(Exchange& exchange);
  void SendOn(Connection& connection, Exchange& exchange, Time now);
  void SendBegun();
  void SendAgain(Exchange& exchange);
  void Wait(Exchange& exchange);
  void StopWaiting(Exchange& exchange);
  void EndLater(Exchange& exchange, Status status);
  void Deliver(Exchange& exchange, Status status);
  void CloseWhenEmpty();

  // Connections.
  Result<Origin*> OriginOf(std::string_view url);
  void Replenish(Origin& origin);
  void StartSetup(Origin& origin, const Addresses& addresses, size_t first);
  Status OpenConnection(Origin& origin, Peer& peer, Exchange& sponsor);
  void EndSetup(Connection& connection);
  void OnSetupFailed(Origin& origin, RequestId sponsor, Status status, size_t addresses);
  void OnResolved(Origin& origin, Result<Addresses> addresses);
  Exchange* FirstWaiting(Origin& origin, bool for_new_connection);
  std::vector<sys::SocketAddress> BusyWith(const Exchange& exchange);
  void ReleaseConnection(Connection& connection, Time now);
  void CloseConnection(Connection& connection);
  void RunResumed();
  void PurgeClosed() { closed_.clear(); }

  // Deadlines: one timer looks at everything, at the earliest moment at which one can have passed.
  void CheckBy(Time at);
  void CheckTimes();
  Time CheckExchange(Exchange& exchange, Time now);
  Time CheckConnection(Connection& connection, Time now);

  sys::EventLoop& loop_;
  const LeanTransportOptions options_;
  std::unique_ptr<lean::TlsContext> tls_;
  Resolver resolver_;
  std::vector<std::byte> scratch_;
  lean::HeadParser parser_;
  std::unordered_map<std::string, std::unique_ptr<Origin>, StringHash, std::equal_to<>> origins_;
  Origin* last_origin_ = nullptr;
  std::vector<std::unique_ptr<Exchange>> exchanges_;  // by slot
  std::vector<uint32_t> free_slots_;
  size_t active_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> closed_;  // may still be on the stack
  std::vector<Connection*> resumed_;                 // have more to read
  std::vector<Connection*> resuming_;
  std::vector<Connection*> begun_;  // whose request has yet to go out; null: closed meanwhile
  std::vector<Connection*> sending_;
  Executor::TimerId timer_ = 0;
  Time timer_at_ = kNever;
  bool closing_ = false;
  Task on_closed_;
};

LeanTransport::~LeanTransport() {
  const bool loop_runs = loop_.InThread();  // else it has stopped and watches nothing
  FB_ASSERT(!loop_runs || active_ == 0);
  if (loop_runs && timer_ != 0) loop_.CancelTimer(timer_);
  for (const auto& connection : connections_) connection->Close(loop_runs);
}

// ---- exchanges

Exchange& LeanTransport::NewExchange(HttpRequest request, HttpHandler* handler) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(exchanges_.size()));
    exchanges_.push_back(std::make_unique<Exchange>());
    exchanges_.back()->id = free_slots_.back();
  }
  Exchange& e = *exchanges_[free_slots_.back()];
  free_slots_.pop_back();
  ++active_;
  e.id += uint64_t{1} << 32;
  e.state = Exchange::State::kWaiting;
  e.request = std::move(request);
  e.handler = handler;
  e.origin = nullptr;
  e.connection = nullptr;
  e.resent = false;
  e.sponsors = false;
  e.setup_failures = 0;
  e.started = loop_.Now();
  e.timing = {};
  e.sink = {};
  e.head_done = false;
  return e;
}

Exchange* LeanTransport::Find(RequestId id) {
  const uint64_t slot = id & 0xffffffffU;
  if (slot >= exchanges_.size()) return nullptr;
  Exchange* exchange = exchanges_[slot].get();
  return exchange->id == id && exchange->state != Exchange::State::kFree ? exchange : nullptr;
}

HttpTransport::RequestId LeanTransport::Start(HttpRequest request, HttpHandler* handler) {
  FB_ASSERT(loop_.InThread());
  Exchange& e = NewExchange(std::move(request), handler);
  const RequestId id = e.id;
  Status status = Prepare(e);
  if (status.ok() && closing_) status = Status(Code::kCancelled, "the transport is closed");
  if (status.ok() && e.started >= e.request.deadline) {
    status = Status(Code::kDeadlineExceeded, "the deadline passed before the request was sent");
  }
  if (status.ok()) {
    Send(e);
  } else {
    EndLater(e, std::move(status));
  }
  return id;
}

// Where it goes, and whether it may.
Status LeanTransport::Prepare(Exchange& e) {
  FB_RETURN_IF_ERROR(detail::CheckRequest(e.request));
  FB_ASSIGN_OR_RETURN(e.origin, OriginOf(e.request.url));
  return {};
}

void LeanTransport::WriteHead(Exchange& e) {
  const HttpRequest& request = e.request;
  std::string_view target(request.url);
  target.remove_prefix(e.origin->name.size());
  std::string& head = e.wire_head;
  head.assign(request.method);
  head += ' ';
  if (target.empty() || target.front() != '/') head += '/';
  head += target;
  head += " HTTP/1.1\r\nHost: ";
  head += e.origin->authority;
  for (const auto& [name, value] : request.headers) {
    head += "\r\n";
    head += name;
    head += ": ";
    head += value;
  }
  uint64_t length = 0;
  for (const ByteView piece : request.body) length += piece.size();
  if (length > 0 || request.method == "PUT" || request.method == "POST") {
    head += "\r\nContent-Length: ";
    head += std::to_string(length);
  }
  head += "\r\n\r\n";
  e.send_total = head.size() + length;
}

void LeanTransport::Send(Exchange& e) {
  std::vector<sys::SocketAddress> avoid;
  if (e.request.other_address) avoid = BusyWith(e);
  Connection* connection = e.origin->TakeIdle(e.started, avoid);
  if (connection == nullptr) {
    Wait(e);
  } else {
    SendOn(*connection, e, e.started);
  }
}

// Where the same bytes are already asked for, or are about to be.
std::vector<sys::SocketAddress> LeanTransport::BusyWith(const Exchange& e) {
  std::vector<sys::SocketAddress> busy;
  const std::string_view range = FindHeader(e.request.headers, "range");
  for (const auto& connection : connections_) {
    const Exchange* other =
        connection->being_made() ? Find(connection->sponsor) : connection->exchange();
    if (other != nullptr && other != &e && other->request.url == e.request.url &&
        FindHeader(other->request.headers, "range") == range) {
      busy.push_back(connection->peer().address);
    }
  }
  return busy;
}

void LeanTransport::SendOn(Connection& connection, Exchange& e, Time now) {
  WriteHead(e);
  e.parser.reset();
  e.chunks.Reset();
  e.head_done = false;
  e.sent = e.sent_piece = e.sent_offset = 0;
  connection.Begin(e, now);
  const Duration shortest = std::min(e.request.first_byte_timeout, e.request.stall_timeout);
  CheckBy(std::min(e.request.deadline, e.sent_at + shortest));
  if (begun_.empty()) loop_.Post([this] { SendBegun(); });
  begun_.push_back(&connection);
  if (begun_.size() >= kSendsAtOnce) SendBegun();
}

void LeanTransport::SendBegun() {
  sending_.swap(begun_);
  for (size_t i = 0; i < sending_.size(); ++i) {
    Connection* connection = sending_[i];
    if (connection == nullptr || connection->SendBegun()) continue;
    Exchange& e = *connection->exchange();
    CloseConnection(*connection);
    SendAgain(e);
  }
  sending_.clear();
}

// Its connection broke before any byte of an answer, which can happen to any that was idle.
void LeanTransport::SendAgain(Exchange& e) {
  e.connection = nullptr;
  if (e.resent || !e.timing.reused_connection || !IsIdempotent(e.request.method)) {
    EndLater(e, Status(Code::kUnavailable, "the connection broke while the request was sent"));
    return;
  }
  e.resent = true;
  Wait(e);
}

void LeanTransport::Wait(Exchange& e) {
  e.state = Exchange::State::kWaiting;
  e.origin->waiting.push_back(e.id);
  ++e.origin->waiting_count;
  CheckBy(e.request.deadline);
  Replenish(*e.origin);
}

void LeanTransport::StopWaiting(Exchange& e) {
  FB_ASSERT(e.state == Exchange::State::kWaiting && e.origin->waiting_count > 0);
  if (--e.origin->waiting_count == 0) e.origin->waiting.clear();
}

void LeanTransport::EndLater(Exchange& e, Status status) {
  e.state = Exchange::State::kEnding;
  e.end = std::move(status);
  loop_.Post([this, id = e.id] {
    Exchange* exchange = Find(id);
    FB_ASSERT(exchange != nullptr);
    Deliver(*exchange, std::move(exchange->end));
  });
}

void LeanTransport::Deliver(Exchange& e, Status status) {
  // A good end is as late as its last byte; asking for the time costs, over all.
  e.timing.total = (status.ok() ? e.progress : loop_.Now()) - e.started;
  e.timing.body_bytes = e.sink.bytes();
  const HttpTiming timing = e.timing;
  HttpHandler* handler = e.handler;
  e.state = Exchange::State::kFree;
  e.sink = {};
  free_slots_.push_back(static_cast<uint32_t>(e.id & 0xffffffffU));
  --active_;
  handler->OnDone(std::move(status), timing);
  CloseWhenEmpty();
}

void LeanTransport::Cancel(RequestId id) {
  FB_ASSERT(loop_.InThread());
  Exchange* e = Find(id);
  if (e == nullptr || e->state == Exchange::State::kEnding) return;
  if (e->state == Exchange::State::kWaiting) StopWaiting(*e);
  if (e->state == Exchange::State::kRunning) CloseConnection(*e->connection);
  EndLater(*e, Status(Code::kCancelled, "the request was cancelled"));
}

void LeanTransport::Close(Task on_closed) {
  FB_ASSERT(loop_.InThread());
  FB_ASSERT(!closing_);
  closing_ = true;
  on_closed_ = std::move(on_closed);
  for (const auto& exchange : exchanges_) {
    if (exchange->state != Exchange::State::kFree) Cancel(exchange->id);
  }
  while (!connections_.empty()) CloseConnection(*connections_.back());
  for (const auto& [name, origin] : origins_) resolver_.Cancel(origin->resolving);
  CloseWhenEmpty();
}

void LeanTransport::CloseWhenEmpty() {
  if (!closing_ || active_ > 0 || !on_closed_) return;
  loop_.Post(std::exchange(on_closed_, nullptr));
}

void LeanTransport::OnExchangeOver(Connection& connection, Exchange& e, Outcome outcome) {
  if (outcome.reusable) {
    ReleaseConnection(connection, e.progress);
  } else {
    Origin& origin = connection.origin();
    CloseConnection(connection);
    if (origin.waiting_count > 0) Replenish(origin);  // it might have served one of them
  }
  if (outcome.unanswered && !e.resent && e.timing.reused_connection &&
      IsIdempotent(e.request.method)) {
    e.resent = true;
    Wait(e);
    return;
  }
  Deliver(e, std::move(outcome.status));
}

// ---- connections

Result<Origin*> LeanTransport::OriginOf(std::string_view url) {
  if (last_origin_ != nullptr && url.starts_with(last_origin_->name)) {
    const std::string_view rest = url.substr(last_origin_->name.size());
    if (rest.empty() || rest.front() == '/' || rest.front() == '?') return last_origin_;
  }
  FB_ASSIGN_OR_RETURN(const detail::UrlParts parts, detail::SplitUrl(url));
  auto found = origins_.find(parts.origin);
  if (found == origins_.end()) {
    if (origins_.size() >= kMaxOrigins) {
      std::erase_if(origins_, [](const auto& entry) { return entry.second->IsUnused(); });
      last_origin_ = nullptr;
    }
    found = origins_.emplace(parts.origin, std::make_unique<Origin>(parts)).first;
  }
  return last_origin_ = found->second.get();
}

// As many connections being made as requests wait for one.
void LeanTransport::Replenish(Origin& origin) {
  if (origin.resolving != 0 || closing_) return;
  while (origin.setups < std::min(origin.waiting_count, kMaxSetups)) {
    const std::optional<Addresses> addresses = resolver_.Cached(origin.host);
    if (!addresses) {
      Exchange* first = FirstWaiting(origin, true);
      FB_ASSERT(first != nullptr);
      origin.resolving = resolver_.Resolve(
          origin.host, loop_.Now() + first->request.connect_timeout,
          [this, &origin](Result<Addresses> answer) { OnResolved(origin, std::move(answer)); });
      return;
    }
    StartSetup(origin, *addresses, 0);
  }
}

void LeanTransport::OnResolved(Origin& origin, Result<Addresses> addresses) {
  origin.resolving = 0;
  if (addresses.ok()) {
    for (size_t i = 0; origin.setups < std::min(origin.waiting_count, kMaxSetups); ++i) {
      StartSetup(origin, *addresses, i);
    }
    return;
  }
  Status status = std::move(addresses).status();
  if (status.code() == Code::kDeadlineExceeded) {
    status = Status(Code::kUnavailable, fmt::format("looking up {} takes too long", origin.host));
  }
  while (Exchange* e = FirstWaiting(origin, true)) {
    StopWaiting(*e);
    EndLater(*e, status);
  }
}

// The oldest that waits. A request that is sent again takes none that has served another.
Exchange* LeanTransport::FirstWaiting(Origin& origin, bool for_new_connection) {
  const auto gone = [this](RequestId id) {
    const Exchange* e = Find(id);
    return e == nullptr || e->state != Exchange::State::kWaiting;
  };
  while (!origin.waiting.empty() && gone(origin.waiting.front())) origin.waiting.pop_front();
  for (const RequestId id : origin.waiting) {
    if (gone(id)) continue;
    Exchange* e = Find(id);
    if (for_new_connection || !e->resent) return e;
  }
  return nullptr;
}

// To the `first`th address, unless the request for whose sake it is made avoids that one.
void LeanTransport::StartSetup(Origin& origin, const Addresses& addresses, size_t first) {
  Exchange* sponsor = nullptr;  // the oldest that has none on the way yet
  for (const RequestId id : origin.waiting) {
    Exchange* e = Find(id);
    if (e == nullptr || e->state != Exchange::State::kWaiting) continue;
    sponsor = e;
    if (!e->sponsors) break;
  }
  FB_ASSERT(sponsor != nullptr);
  std::vector<sys::SocketAddress> avoid;
  if (sponsor->request.other_address) avoid = BusyWith(*sponsor);
  sys::IpAddress ip = addresses[first % addresses.size()];
  for (size_t i = 0; i < addresses.size() && !avoid.empty(); ++i) {
    const sys::IpAddress& other = addresses[(first + i) % addresses.size()];
    if (std::ranges::find(avoid, sys::SocketAddress{other, origin.port}) != avoid.end()) continue;
    ip = other;
    break;
  }
  Peer& peer = origin.PeerOf(ip);
  Status status = OpenConnection(origin, peer, *sponsor);
  if (status.ok()) return;
  resolver_.cache().ReportFailure(origin.host, ip);
  OnSetupFailed(origin, sponsor->id, std::move(status), addresses.size());
}

Status LeanTransport::OpenConnection(Origin& origin, Peer& peer, Exchange& sponsor) {
  FB_ASSIGN_OR_RETURN(sys::Fd socket, sys::StartConnect(peer.address));
  auto connection = std::make_unique<Connection>(loop_, *this, origin, peer, std::move(socket));
  if (origin.tls) FB_RETURN_IF_ERROR(MakeTls());
  Status opened = connection->Open(origin.tls ? tls_.get() : nullptr);
  if (!opened.ok()) {
    connection->Close();
    return opened;
  }
  connection->index = connections_.size();
  connection->sponsor = sponsor.id;
  sponsor.sponsors = true;
  connection->setup_deadline = loop_.Now() + sponsor.request.connect_timeout;
  CheckBy(connection->setup_deadline);
  ++peer.open;
  ++origin.setups;
  connections_.push_back(std::move(connection));
  return {};
}

void LeanTransport::EndSetup(Connection& connection) {
  --connection.origin().setups;
  if (Exchange* sponsor = Find(connection.sponsor)) sponsor->sponsors = false;
  connection.setup_deadline = kNever;
}

void LeanTransport::OnReady(Connection& connection) {
  EndSetup(connection);
  Origin& origin = connection.origin();
  resolver_.cache().ReportSuccess(origin.host, connection.peer().address.ip);
  ReleaseConnection(connection, loop_.Now());
  Replenish(origin);
}

void LeanTransport::OnSetupFailed(Connection& connection, Status status) {
  Origin& origin = connection.origin();
  EndSetup(connection);
  status = std::move(status).WithContext(connection.peer().address.ToString());
  resolver_.cache().ReportFailure(origin.host, connection.peer().address.ip);
  const RequestId sponsor = connection.sponsor;
  CloseConnection(connection);
  const auto addresses = resolver_.Cached(origin.host);
  OnSetupFailed(origin, sponsor, std::move(status), addresses ? addresses->size() : 1);
  Replenish(origin);
}

// Whom a connection that was not made takes along: the request for which it was to be, or, when
// that has found another, the oldest that now waits in vain.
void LeanTransport::OnSetupFailed(Origin& origin, RequestId sponsor, Status status,
                                  size_t addresses) {
  Exchange* victim = Find(sponsor);
  if (victim == nullptr || victim->state != Exchange::State::kWaiting) {
    victim = origin.waiting_count > origin.setups ? FirstWaiting(origin, true) : nullptr;
  }
  if (victim == nullptr) return;
  const size_t most = std::min(kMaxSetupFailures, addresses);
  const bool again = status.code() == Code::kUnavailable && ++victim->setup_failures < most;
  if (again) return;  // another connection is made
  StopWaiting(*victim);
  EndLater(*victim, std::move(status));
}

// It can serve a request: the oldest that waits, or a later one.
void LeanTransport::ReleaseConnection(Connection& connection, Time now) {
  Origin& origin = connection.origin();
  Exchange* next = origin.waiting_count > 0 ? FirstWaiting(origin, !connection.used) : nullptr;
  if (next == nullptr) {
    connection.idle_since = now;
    origin.AddIdle(connection);
    CheckBy(connection.idle_since + lean::kMaxIdle);
    return;
  }
  StopWaiting(*next);
  SendOn(connection, *next, now);
}

void LeanTransport::CloseConnection(Connection& connection) {
  FB_ASSERT(connection.state() != Connection::State::kClosed);
  if (connection.state() == Connection::State::kIdle) connection.origin().RemoveIdle(connection);
  if (connection.setup_deadline != kNever) EndSetup(connection);
  connection.Close();
  std::erase(resumed_, &connection);
  std::erase(resuming_, &connection);
  std::ranges::replace(begun_, &connection, nullptr);
  std::ranges::replace(sending_, &connection, nullptr);
  --connection.peer().open;
  const size_t index = connection.index;
  if (closed_.empty()) loop_.Post([this] { PurgeClosed(); });
  closed_.push_back(std::move(connections_[index]));
  if (index + 1 < connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index = index;
  }
  connections_.pop_back();
}

void LeanTransport::ResumeLater(Connection& connection) {
  if (resumed_.empty()) loop_.Post([this] { RunResumed(); });
  resumed_.push_back(&connection);
}

void LeanTransport::RunResumed() {
  resuming_.swap(resumed_);
  while (!resuming_.empty()) {  // each may close others that wait here too
    Connection* connection = resuming_.back();
    resuming_.pop_back();
    connection->Resume();
  }
}

// ---- deadlines

void LeanTransport::CheckBy(Time at) {
  if (at >= timer_at_) return;
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_at_ = at;
  timer_ = loop_.PostAt(at, [this] { CheckTimes(); });
}

void LeanTransport::CheckTimes() {
  timer_ = 0;
  timer_at_ = kNever;
  const Time now = loop_.Now();
  Time next = kNever;
  for (size_t i = 0; i < exchanges_.size(); ++i) {
    next = std::min(next, CheckExchange(*exchanges_[i], now));
  }
  for (size_t i = connections_.size(); i-- > 0;) {
    if (i >= connections_.size()) continue;
    next = std::min(next, CheckConnection(*connections_[i], now));
  }
  if (next != kNever) CheckBy(std::max(next, now + kFinestCheck));
}

// Ends it when a bound has passed; else when the next may.
Time LeanTransport::CheckExchange(Exchange& e, Time now) {
  if (e.state != Exchange::State::kWaiting && e.state != Exchange::State::kRunning) return kNever;
  const HttpRequest& request = e.request;
  const bool running = e.state == Exchange::State::kRunning;
  Status status;
  Time next = request.deadline;
  if (now >= request.deadline) {
    const char* phase = !running      ? "waiting for a connection"
                        : e.head_done ? "receiving the body"
                                      : "waiting for the answer";
    status = Status(Code::kDeadlineExceeded,
                    fmt::format("the deadline passed while {}, {} body bytes had arrived", phase,
                                e.sink.bytes()));
  } else if (running) {
    const bool first_byte = !e.head_done && e.all_sent();
    const Time bound =
        e.progress + (first_byte ? request.first_byte_timeout : request.stall_timeout);
    if (now >= bound) {
      status = Status(Code::kUnavailable,
                      first_byte    ? std::string("no answer came in time")
                      : e.head_done ? fmt::format("the body stalled after {} bytes", e.sink.bytes())
                                    : fmt::format("sending stalled after {} of {} bytes", e.sent,
                                                  e.send_total));
    }
    // The next phase may have a shorter bound than this one, and nobody tells when it begins.
    next = std::min({next, bound, now + request.stall_timeout});
  }
  if (status.ok()) return next;
  if (running) {
    CloseConnection(*e.connection);
  } else {
    StopWaiting(e);
  }
  EndLater(e, std::move(status));
  return kNever;
}

Time LeanTransport::CheckConnection(Connection& connection, Time now) {
  if (connection.being_made()) {
    if (now < connection.setup_deadline) return connection.setup_deadline;
    OnSetupFailed(connection, Status(Code::kUnavailable, "connecting took too long"));
    return kNever;
  }
  if (connection.state() != Connection::State::kIdle) return kNever;
  const Time end = connection.idle_since + lean::kMaxIdle;
  if (now < end) return std::max(end, now + kFinestIdleCheck);
  CloseConnection(connection);
  return kNever;
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> MakeLeanTransport(sys::EventLoop& loop,
                                                         const LeanTransportOptions& options) {
  auto transport = std::make_unique<LeanTransport>(loop, options);
  if (!options.ca_bundle.empty()) FB_RETURN_IF_ERROR(transport->MakeTls());
  return std::unique_ptr<HttpTransport>(std::move(transport));
}

}  // namespace forebay::net
