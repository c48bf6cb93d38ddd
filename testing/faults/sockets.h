// The few socket calls of the fault server. Descriptors are non-blocking and close on exec.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "forebay/status.h"

namespace forebay::faults {

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  uint16_t port() const;
  bool is_loopback() const;
  std::string ToString() const;  // "127.0.0.1:80", "[::1]:80"
};

// "HOST:PORT", "[V6]:PORT". May ask the resolver, so not on a loop.
Result<Address> ResolveAddress(std::string_view host_and_port);

// Bound and listening; port 0 takes a free one.
Result<Fd> Listen(const Address& address);
Result<Address> LocalAddress(int fd);
// Starts to connect: writable once that is decided.
Result<Fd> StartConnect(const Address& address);
// 0, or the errno of what went wrong on the socket.
int SocketError(int fd);
void SetNoDelay(int fd);
// The next close sends RST and drops what was not sent yet.
void SetResetOnClose(int fd);
// Bytes written that the peer has not acknowledged.
int UnacknowledgedBytes(int fd);

// What a non-blocking transfer came to.
enum class Io : uint8_t { kOk, kWouldBlock, kEnd, kFailed };
struct Transfer {
  Io io = Io::kOk;
  size_t bytes = 0;
};
Transfer Receive(int fd, char* into, size_t size);
Transfer Send(int fd, std::string_view bytes, bool more);

}  // namespace forebay::faults
