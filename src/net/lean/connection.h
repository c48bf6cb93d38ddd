// One TCP connection to one address of a host: set up, then one exchange after another. It is
// registered with the event loop once, edge-triggered, for its whole life: a GET costs no
// epoll_ctl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"
#include "net/lean/exchange.h"
#include "net/lean/tls.h"
#include "sys/event_loop.h"
#include "sys/tcp.h"

namespace forebay::net::lean {

class Connection;
struct Peer;

// How an exchange ended on its connection.
struct Outcome {
  Status status;
  bool reusable = false;  // the connection may serve another
  // The connection broke before any byte of an answer.
  bool unanswered = false;
};

// What a connection tells its transport. Each of these may destroy or reuse the connection's
// exchange; none destroys the connection before the loop's next turn.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void OnReady(Connection& connection) = 0;
  virtual void OnSetupFailed(Connection& connection, Status status) = 0;
  virtual void OnExchangeOver(Connection& connection, Exchange& exchange, Outcome outcome) = 0;
  // It was closed by the server, or said something, while idle.
  virtual void OnIdleLost(Connection& connection) = 0;
  // More can be read at once; others get their turn first.
  virtual void ResumeLater(Connection& connection) = 0;
  // Memory for bytes whose place is not known yet; free between two calls.
  virtual MutableBytes scratch() = 0;
  // Parses the heads that come in one piece, as most do. One for all connections stays in the
  // cache, where those of a thousand exchanges do not.
  virtual HeadParser& parser() = 0;
  virtual Time Now() = 0;
};

class Connection {
 public:
  enum class State : uint8_t { kConnecting, kHandshaking, kIdle, kBusy, kClosed };

  Connection(sys::EventLoop& loop, ConnectionOwner& owner, Origin& origin, Peer& peer, sys::Fd fd)
      : loop_(loop), owner_(owner), origin_(origin), peer_(peer), fd_(std::move(fd)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Registers with the loop; then OnReady or OnSetupFailed. `tls`: null for plain HTTP.
  Status Open(TlsContext* tls);
  // Idle -> busy. Nothing goes out before SendBegun.
  void Begin(Exchange& exchange, Time now);
  // Sends what can be sent of an exchange of which nothing went out. False: it broke, and is to be
  // closed.
  bool SendBegun();
  // Goes on reading where ResumeLater was called.
  void Resume();
  // Whatever it does, it stops; nothing is told to anybody. `unwatch` is false once the loop has
  // stopped.
  void Close(bool unwatch = true);

  State state() const { return state_; }
  bool being_made() const { return state_ == State::kConnecting || state_ == State::kHandshaking; }
  Origin& origin() { return origin_; }
  Peer& peer() { return peer_; }
  Exchange* exchange() { return exchange_; }

  // The transport's notes.
  size_t index = 0;  // in its list
  Time idle_since{};
  Time setup_deadline = kNever;
  HttpTransport::RequestId sponsor = 0;  // the exchange for whose sake it was opened
  bool used = false;                     // has served an exchange before

 private:
  void OnEvents(uint32_t events);
  // As sys::EventLoop::Watch has it.
  void Expect(int turns) const;
  void OnConnectDecided(uint32_t events);
  void ContinueHandshake();
  void BecomeReady();
  void OnIdleEvent();
  // False: broken, `broken_` says why.
  bool SendMore();
  void Receive();
  // These take one step; false: stop, the exchange is over or there is nothing to read.
  bool ReceiveHead();
  // Head and body at once, where the head's size is as good as known.
  bool ReceiveAtOnce(size_t head);
  // Of a body whose place was guessed, `n` bytes have landed there.
  bool TakeLanded(size_t n, size_t head);
  std::vector<std::byte> Joined(ByteView begin, size_t n) const;
  bool ReceiveDirect();
  bool ReceiveCopied();
  bool TakeHead(ByteView bytes);
  bool AcceptHead(const HeadParser& parser);
  bool TakeBody(ByteView bytes);
  bool OnReadNothing(const sys::IoResult& result);
  void OnEndOfStream();
  void Complete(bool leftovers);
  void Fail(Status status);
  void FailBroken(Status status);
  Status BrokenBy(std::string_view what, int error) const;

  // Of `pieces`, which are not all empty.
  sys::IoResult Write(std::span<const ByteView> pieces);
  // `size`: of all pieces.
  sys::IoResult Read(std::span<const MutableBytes> into, size_t size);
  bool Busy(const Exchange& exchange) const {
    return state_ == State::kBusy && exchange_ == &exchange;
  }

  sys::EventLoop& loop_;
  ConnectionOwner& owner_;
  Origin& origin_;
  Peer& peer_;
  sys::Fd fd_;
  State state_ = State::kConnecting;
  Exchange* exchange_ = nullptr;
  Readiness ready_;
  std::unique_ptr<TlsChannel> tls_;
  int broken_ = 0;  // errno of a failed send
};

}  // namespace forebay::net::lean
