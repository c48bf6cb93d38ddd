#include "sys/tcp.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace forebay::sys {
namespace {

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

RawAddress ToRaw(const SocketAddress& address) {
  RawAddress raw;
  if (address.ip.is_v6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(raw.storage);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, address.ip.bytes.data(), 16);
    in6.sin6_scope_id = address.ip.scope;
    raw.size = sizeof in6;
  } else {
    auto& in4 = reinterpret_cast<sockaddr_in&>(raw.storage);
    in4.sin_family = AF_INET;
    in4.sin_port = htons(address.port);
    std::memcpy(&in4.sin_addr, address.ip.bytes.data(), 4);
    raw.size = sizeof in4;
  }
  return raw;
}

IoResult ResultOf(ssize_t n) {
  if (n >= 0) return {.bytes = static_cast<size_t>(n)};
  const int error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK) return {.would_block = true};
  return {.error = error};
}

}  // namespace

std::string SocketAddress::ToString() const {
  return ip.is_v6 ? fmt::format("[{}]:{}", ip.ToString(), port)
                  : fmt::format("{}:{}", ip.ToString(), port);
}

Result<Fd> StartConnect(const SocketAddress& address) {
  Fd socket(::socket(address.ip.is_v6 ? AF_INET6 : AF_INET,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket.valid()) {
    const int error = errno;
    const bool exhausted =
        error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    return Status(exhausted ? Code::kResourceExhausted : Code::kUnavailable,
                  fmt::format("socket: {}", std::strerror(error)));
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const RawAddress raw = ToRaw(address);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&raw.storage), raw.size) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    return Status(Code::kUnavailable,
                  fmt::format("connect to {}: {}", address.ToString(), std::strerror(errno)));
  }
  return socket;
}

int PendingError(const Fd& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

IoResult Receive(const Fd& socket, MutableBytes into) {
  ssize_t n = 0;
  do {
    n = ::recv(socket.get(), into.data(), into.size(), 0);
  } while (n < 0 && errno == EINTR);
  return ResultOf(n);
}

// recvmsg, not readv: it goes to the socket without the detour over files.
IoResult Receive(const Fd& socket, std::span<const MutableBytes> into) {
  std::array<iovec, kMaxPieces> pieces;
  const size_t count = std::min(into.size(), kMaxPieces);
  for (size_t i = 0; i < count; ++i) {
    pieces[i] = {.iov_base = into[i].data(), .iov_len = into[i].size()};
  }
  msghdr message{.msg_iov = pieces.data(), .msg_iovlen = count};
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket.get(), &message, 0);
  } while (n < 0 && errno == EINTR);
  return ResultOf(n);
}

IoResult Send(const Fd& socket, ByteView from) {
  ssize_t n = 0;
  do {
    n = ::send(socket.get(), from.data(), from.size(), MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return ResultOf(n);
}

IoResult Send(const Fd& socket, std::span<const ByteView> from) {
  if (from.size() == 1) return Send(socket, from.front());
  std::array<iovec, kMaxPieces> pieces;
  const size_t count = std::min(from.size(), kMaxPieces);
  for (size_t i = 0; i < count; ++i) {
    pieces[i] = {.iov_base = const_cast<std::byte*>(from[i].data()), .iov_len = from[i].size()};
  }
  const msghdr message{.msg_iov = pieces.data(), .msg_iovlen = count};
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return ResultOf(n);
}

}  // namespace forebay::sys
