#include "testing/faults/sockets.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace forebay::faults {
namespace {

constexpr int kBacklog = 4096;

Status OsError(std::string_view what) {
  const int error = errno;
  const Code code = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM
                        ? Code::kResourceExhausted
                        : Code::kUnavailable;
  return {code, fmt::format("{}: {}", what, std::strerror(error))};
}

Transfer FromCall(ssize_t n, size_t wanted) {
  if (n > 0) return {Io::kOk, static_cast<size_t>(n)};
  if (n == 0) return {wanted == 0 ? Io::kOk : Io::kEnd, 0};
  const bool again = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {again ? Io::kWouldBlock : Io::kFailed, 0};
}

}  // namespace

void Fd::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

uint16_t Address::port() const {
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

bool Address::is_loopback() const {
  if (storage.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr) != 0;
  }
  return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
}

std::string Address::ToString() const {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  if (storage.ss_family == AF_INET6) return fmt::format("[{}]:{}", host, port());
  return fmt::format("{}:{}", host, port());
}

Result<Address> ResolveAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return Status(Code::kInvalidArgument, fmt::format("\"{}\" is not HOST:PORT", text));
  }
  std::string host(text.substr(0, colon));
  const std::string port(text.substr(colon + 1));
  // getaddrinfo takes 99999 for 34463.
  uint16_t number = 0;
  const auto [rest, error_code] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error_code != std::errc() || rest != port.data() + port.size()) {
    return Status(Code::kInvalidArgument, fmt::format("\"{}\": the port must be 0 to 65535", text));
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return Status(Code::kInvalidArgument, fmt::format("\"{}\": {}", text, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  // A name with both kinds of address: servers on one machine listen on IPv4 more often.
  const addrinfo* chosen = found;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      chosen = a;
      break;
    }
  }
  Address address;
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.length = chosen->ai_addrlen;
  return address;
}

Result<Fd> Listen(const Address& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return OsError("socket");
  const int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    return OsError("bind " + address.ToString());
  }
  if (::listen(fd.get(), kBacklog) != 0) return OsError("listen " + address.ToString());
  return fd;
}

Result<Address> LocalAddress(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return OsError("getsockname");
  }
  return address;
}

Result<Fd> StartConnect(const Address& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return OsError("socket");
  SetNoDelay(fd.get());
  const int rc =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc != 0 && errno != EINPROGRESS) return OsError("connect " + address.ToString());
  return fd;
}

int SocketError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void SetNoDelay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void SetResetOnClose(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int UnacknowledgedBytes(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

Transfer Receive(int fd, char* into, size_t size) {
  return FromCall(::recv(fd, into, size, 0), size);
}

Transfer Send(int fd, std::string_view bytes, bool more) {
  const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  return FromCall(::send(fd, bytes.data(), bytes.size(), flags), bytes.size());
}

}  // namespace forebay::faults
