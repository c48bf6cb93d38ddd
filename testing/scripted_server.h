// A small HTTP/1.1 server for tests that says exactly what a script tells it to, byte by byte: also
// what no real server would. One thread per connection.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http.h"

namespace forebay::testing {

struct SeenRequest {
  std::string method;
  std::string target;  // as it stood in the request line
  net::HeaderList headers;
  std::string body;
  int connection = 0;    // 1, 2, ... in the order accepted
  int number = 0;        // 1, 2, ... over all connections
  bool resumed = false;  // its TLS session is one of an earlier connection
};

struct ScriptedReply {
  enum class Then : uint8_t {
    kKeep,   // wait for the next request
    kClose,  // orderly: FIN, after TLS's own goodbye
    kCut,    // FIN alone
    kReset,  // RST
    kHang,   // say nothing more until the client goes away
    kDrip,   // a header field each 5 ms until the client goes away
  };
  std::string bytes;  // head and body as they are
  Then then = Then::kKeep;
};

// "HTTP/1.1 STATUS x", the headers, Content-Length, and the body.
std::string HttpText(int status, const net::HeaderList& headers, const std::string& body);

class ScriptedServer {
 public:
  using Script = std::function<ScriptedReply(const SeenRequest&)>;  // called on any thread

  struct Options {
    bool tls = false;            // with TlsIdentity's certificate
    bool all_addresses = false;  // not 127.0.0.1 alone
    int backlog = 64;
    bool accept = true;  // false: connections are left in the system's queue
  };

  explicit ScriptedServer(Script script) : ScriptedServer(std::move(script), Options()) {}
  ScriptedServer(Script script, Options options);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const;  // http://127.0.0.1:PORT, or https://
  std::vector<SeenRequest> seen() const FB_EXCLUDES(mutex_);
  int connections() const FB_EXCLUDES(mutex_);

 private:
  void Accept() FB_EXCLUDES(mutex_);
  struct Stream;
  void Serve(int fd, int connection) FB_EXCLUDES(mutex_);
  // False: the connection is over.
  bool Answer(Stream& stream, SeenRequest request) FB_EXCLUDES(mutex_);

  const Script script_;
  const bool tls_;
  int listener_ = -1;
  uint16_t port_ = 0;
  mutable Mutex mutex_;
  std::vector<SeenRequest> seen_ FB_GUARDED_BY(mutex_);
  std::vector<int> open_ FB_GUARDED_BY(mutex_);  // sockets that Serve still reads
  int accepted_ FB_GUARDED_BY(mutex_) = 0;
  bool stopping_ FB_GUARDED_BY(mutex_) = false;
  std::list<std::thread> threads_ FB_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace forebay::testing
