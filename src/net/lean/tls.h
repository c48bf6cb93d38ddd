// TLS on a connected socket, over OpenSSL: verified against a CA bundle and the host's name, with
// sessions resumed. Reads ahead of a record, so that a read of the socket brings several; gives its
// buffers back while it is idle.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"
#include "sys/tcp.h"

struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct bio_method_st;

namespace forebay::net::lean {

// What an edge-triggered socket is known to hold.
struct Readiness {
  bool readable = false;  // perhaps bytes: the last read got all it asked for
  bool hung_up = false;   // the peer has closed its side: a short read proves nothing any more

  // To be told of every read of `asked` bytes.
  void Learn(const sys::IoResult& result, size_t asked) {
    if (result.would_block || (result.ok() && result.bytes < asked && !hung_up)) readable = false;
  }
};

// Sessions that a host gave out, for the next connections to it. A few, the newest first.
class TlsSessions {
 public:
  TlsSessions() = default;
  ~TlsSessions();
  TlsSessions(const TlsSessions&) = delete;
  TlsSessions& operator=(const TlsSessions&) = delete;
  void Add(ssl_session_st* owned);
  // The newest; the last one is given out again and again. Null: none. The caller owns it.
  ssl_session_st* Take();

 private:
  std::vector<ssl_session_st*> sessions_;
};

class TlsChannel;

// What all connections of a transport share.
class TlsContext {
 public:
  // `ca_bundle`: a PEM file, "": the system's. Errors: kInvalidArgument when it cannot be read.
  static Result<std::unique_ptr<TlsContext>> Make(const std::string& ca_bundle, bool verify);
  ~TlsContext();

  // `host` as in a URL. All but the result must outlive it.
  Result<std::unique_ptr<TlsChannel>> Open(const sys::Fd& socket, Readiness& readiness,
                                           const std::string& host, TlsSessions& sessions);

 private:
  TlsContext() = default;
  Status Configure(const std::string& ca_bundle, bool verify);
  ssl_ctx_st* context_ = nullptr;
  bio_method_st* method_ = nullptr;
};

// One connection's. Each call reports as the socket calls do; `error` is then EPROTO and
// `failure()` says more.
class TlsChannel {
 public:
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  // OK with no bytes: done. Else again at the next event.
  sys::IoResult Handshake();
  sys::IoResult Read(std::span<const MutableBytes> into);
  sys::IoResult Write(ByteView bytes);
  // Bytes have been received that were not read yet: perhaps of the protocol alone.
  bool HasPending() const;
  // The stream ended as TLS says it must, so that nobody can have cut it short.
  bool ended_cleanly() const { return ended_cleanly_; }
  const Status& failure() const { return failure_; }
  bool resumed() const;

 private:
  friend class TlsContext;
  friend struct TlsCallbacks;
  TlsChannel(const sys::Fd& socket, Readiness& readiness, TlsSessions& sessions)
      : socket_(socket), readiness_(readiness), sessions_(sessions) {}
  sys::IoResult ResultOf(int returned);
  Status Describe(int error) const;

  const sys::Fd& socket_;
  Readiness& readiness_;
  TlsSessions& sessions_;
  ssl_st* ssl_ = nullptr;
  bool socket_ended_ = false;  // the socket's stream did
  bool ended_cleanly_ = false;
  int socket_error_ = 0;
  Status failure_;
};

}  // namespace forebay::net::lean
