// A certificate of a test server's own, made anew in each process, and TLS on the server's side of
// a blocking socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace forebay::testing {

// For 127.0.0.1 to 127.0.0.3, localhost and *.bucket.test; signed by itself. The file is removed
// when the process ends.
class TlsIdentity {
 public:
  static TlsIdentity& OfProcess();
  const std::string& certificate_file() const { return file_; }
  ssl_ctx_st* context() { return context_; }

 private:
  TlsIdentity();
  ~TlsIdentity();
  std::string file_;
  ssl_ctx_st* context_ = nullptr;
};

// One accepted connection. Handshakes with the first call.
class TlsServerSide {
 public:
  explicit TlsServerSide(int fd);
  ~TlsServerSide();
  TlsServerSide(const TlsServerSide&) = delete;
  TlsServerSide& operator=(const TlsServerSide&) = delete;

  // As recv and send; -1 for whatever goes wrong.
  long Receive(char* into, size_t size);
  long Send(const char* from, size_t size);
  void CloseNotify();
  bool resumed() const;

 private:
  ssl_st* ssl_;
};

}  // namespace forebay::testing
