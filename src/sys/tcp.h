// TCP sockets that never block. Calls that would wait say so; failures are errno values, because
// who uses them decides what an error means there.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "forebay/status.h"
#include "sys/address.h"
#include "sys/fd.h"

namespace forebay::sys {

struct SocketAddress {
  IpAddress ip;
  uint16_t port = 0;

  bool valid() const { return port != 0; }
  auto operator<=>(const SocketAddress&) const = default;
  std::string ToString() const;  // "127.0.0.1:80", "[::1]:80"
};

// What one call did: bytes moved, or why none were.
struct IoResult {
  size_t bytes = 0;
  int error = 0;             // errno
  bool would_block = false;  // try again when the loop says so
  bool ok() const { return error == 0 && !would_block; }
};

// Starts to connect: the socket becomes writable when it is decided. TCP_NODELAY is on, keepalive
// probes are off (they would keep a connection alive that its server has given up).
Result<Fd> StartConnect(const SocketAddress& address);
// errno of a connection under way or broken, 0 for none.
int PendingError(const Fd& socket);
// 0 bytes without an error: the peer has closed its side.
IoResult Receive(const Fd& socket, MutableBytes into);
// Into several pieces, in order; at most kMaxPieces of them are used.
IoResult Receive(const Fd& socket, std::span<const MutableBytes> into);
IoResult Send(const Fd& socket, ByteView from);
// At most kMaxPieces pieces are used.
IoResult Send(const Fd& socket, std::span<const ByteView> pieces);
inline constexpr size_t kMaxPieces = 64;

}  // namespace forebay::sys
