#include "testing/scripted_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "testing/tls_identity.h"

namespace forebay::testing {
namespace {

using namespace std::chrono_literals;

SeenRequest ParseHead(std::string_view head) {
  SeenRequest request;
  const size_t method_end = head.find(' ');
  const size_t target_end = head.find(' ', method_end + 1);
  request.method = head.substr(0, method_end);
  request.target = head.substr(method_end + 1, target_end - method_end - 1);
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    const size_t colon = line.find(": ");
    if (colon != line.npos) {
      request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
    at = end + 2;
  }
  return request;
}

}  // namespace

// A connection, with or without TLS.
struct ScriptedServer::Stream {
  int fd;
  std::optional<TlsServerSide> tls;

  long Receive(char* into, size_t size) {
    return tls ? tls->Receive(into, size) : ::recv(fd, into, size, 0);
  }
  bool SendAll(std::string_view bytes) {
    while (!bytes.empty()) {
      const long n = tls ? tls->Send(bytes.data(), bytes.size())
                         : ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Reads on until `text` holds at least `bytes`, or `until` occurs in it when `bytes` is 0.
  bool ReadMore(std::string& text, size_t bytes, std::string_view until) {
    std::array<char, 65536> buffer;
    while (bytes > 0 ? text.size() < bytes : text.find(until) == text.npos) {
      const long n = Receive(buffer.data(), buffer.size());
      if (n <= 0) return false;
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    return true;
  }
};

std::string HttpText(int status, const net::HeaderList& headers, const std::string& body) {
  std::string text = fmt::format("HTTP/1.1 {} Scripted\r\n", status);
  for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
  return text + fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
}

ScriptedServer::ScriptedServer(Script script, Options options)
    : script_(std::move(script)), tls_(options.tls) {
  if (tls_) {
    TlsIdentity::OfProcess();
    // OpenSSL writes without MSG_NOSIGNAL.
    ::signal(SIGPIPE, SIG_IGN);
  }
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(options.all_addresses ? INADDR_ANY : INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  FB_ASSERT(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  FB_ASSERT(::listen(listener_, options.backlog) == 0);
  FB_ASSERT(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ntohs(address.sin_port);
  if (options.accept) acceptor_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  std::list<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  ::close(listener_);
}

std::string ScriptedServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", port_);
}

std::vector<SeenRequest> ScriptedServer::seen() const {
  const MutexLock lock(mutex_);
  return seen_;
}

int ScriptedServer::connections() const {
  const MutexLock lock(mutex_);
  return accepted_;
}

void ScriptedServer::Accept() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const MutexLock lock(mutex_);
    if (stopping_) {
      ::close(fd);
      return;
    }
    open_.push_back(fd);
    threads_.emplace_back([this, fd, connection = ++accepted_] { Serve(fd, connection); });
  }
}

void ScriptedServer::Serve(int fd, int connection) {
  Stream stream{.fd = fd, .tls = {}};
  if (tls_) stream.tls.emplace(fd);
  std::string text;
  while (stream.ReadMore(text, 0, "\r\n\r\n")) {
    const size_t head_end = text.find("\r\n\r\n");
    SeenRequest request = ParseHead(std::string_view(text).substr(0, head_end));
    request.connection = connection;
    request.resumed = stream.tls && stream.tls->resumed();
    text.erase(0, head_end + 4);
    const std::string length(net::FindHeader(request.headers, "content-length"));
    const size_t body_bytes = std::strtoull(length.c_str(), nullptr, 10);
    if (body_bytes > 0 && !stream.ReadMore(text, body_bytes, "")) break;
    request.body = text.substr(0, body_bytes);
    text.erase(0, body_bytes);
    if (!Answer(stream, std::move(request))) break;
  }
  const MutexLock lock(mutex_);
  std::erase(open_, fd);
  ::close(fd);
}

bool ScriptedServer::Answer(Stream& stream, SeenRequest request) {
  {
    const MutexLock lock(mutex_);
    request.number = static_cast<int>(seen_.size()) + 1;
    seen_.push_back(request);
  }
  const ScriptedReply reply = script_(request);
  if (!stream.SendAll(reply.bytes)) return false;
  switch (reply.then) {
    case ScriptedReply::Then::kKeep:
      return true;
    case ScriptedReply::Then::kClose:
      if (stream.tls) stream.tls->CloseNotify();
      return false;
    case ScriptedReply::Then::kCut:
      return false;
    case ScriptedReply::Then::kReset: {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(stream.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return false;
    }
    case ScriptedReply::Then::kHang: {
      char byte = 0;
      while (stream.Receive(&byte, 1) > 0) {
      }
      return false;
    }
    case ScriptedReply::Then::kDrip:
      while (stream.SendAll("x-more: 1\r\n")) std::this_thread::sleep_for(5ms);
      return false;
  }
  return false;
}

}  // namespace forebay::testing
