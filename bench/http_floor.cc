#include "bench/http_floor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "store/s3/sigv4.h"

namespace forebay::bench {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr size_t kHeadBytes = 1024;

// Moves a CRC past `kBlock` zero bytes, by table.
constexpr size_t kBlock = 2048;
class ZeroShift {
 public:
  ZeroShift() {
    std::array<uint32_t, 32> powers{};
    for (unsigned bit = 0; bit < 32; ++bit) powers[bit] = Slow(1U << bit);
    for (unsigned byte = 0; byte < 4; ++byte) {
      for (unsigned value = 0; value < 256; ++value) {
        uint32_t crc = 0;
        for (unsigned bit = 0; bit < 8; ++bit) {
          if ((value >> bit & 1) != 0) crc ^= powers[byte * 8 + bit];
        }
        table_[byte][value] = crc;
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return table_[0][crc & 255] ^ table_[1][crc >> 8 & 255] ^ table_[2][crc >> 16 & 255] ^
           table_[3][crc >> 24];
  }

 private:
  static uint32_t Slow(uint32_t crc) {
    for (size_t i = 0; i < kBlock * 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    return crc;
  }
  std::array<std::array<uint32_t, 256>, 4> table_;
};

uint64_t Word(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, 8);
  return word;
}

// Three independent streams keep the unit busy.
[[gnu::target("sse4.2")]] uint32_t HardwareCrc(uint32_t start, ByteView bytes) {
  static const ZeroShift shift;
  uint64_t crc = ~start;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kBlock; left -= 3 * kBlock, at += 3 * kBlock) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kBlock; i += 8) {
      crc = __builtin_ia32_crc32di(crc, Word(at + i));
      second = __builtin_ia32_crc32di(second, Word(at + kBlock + i));
      third = __builtin_ia32_crc32di(third, Word(at + 2 * kBlock + i));
    }
    crc = shift(static_cast<uint32_t>(crc)) ^ second;
    crc = shift(static_cast<uint32_t>(crc)) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) crc = __builtin_ia32_crc32di(crc, Word(at));
  for (; left > 0; --left, ++at) {
    crc = __builtin_ia32_crc32qi(static_cast<uint32_t>(crc), std::to_integer<uint8_t>(*at));
  }
  return ~static_cast<uint32_t>(crc);
}

struct Socket {
  int fd = -1;
  SSL* ssl = nullptr;
  std::byte* buffer = nullptr;
  size_t object = 0;
  uint64_t received = 0;
  bool head_done = false;
  size_t head_size = 0;
  std::array<char, kHeadBytes> head;
  uint32_t crc = 0;
};

class Floor {
 public:
  Floor(const Server& server, const Shape& shape, std::vector<uint32_t>& crcs)
      : server_(server), shape_(shape), crcs_(crcs), signer_("us-east-1", "s3") {}

  void Connect(std::span<std::byte> buffers) {
    poll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (server_.tls()) {
      context_ = SSL_CTX_new(TLS_client_method());
      SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256");
      SSL_CTX_set_read_ahead(context_, 1);
      SSL_CTX_set_default_read_buffer_len(context_, 64 * 1024);
    }
    host_ = server_.endpoint.substr(server_.endpoint.find("://") + 3);
    sockets_.resize(std::min(shape_.in_flight, shape_.requests));
    for (size_t i = 0; i < sockets_.size(); ++i) {
      sockets_[i].buffer = buffers.data() + i * shape_.bytes;
      Open(sockets_[i], i);
    }
  }

  ~Floor() {
    for (Socket& socket : sockets_) {
      if (socket.ssl != nullptr) SSL_free(socket.ssl);
      ::close(socket.fd);
    }
    if (context_ != nullptr) SSL_CTX_free(context_);
    ::close(poll_);
  }

  void Run() {
    for (Socket& socket : sockets_) Send(socket);
    std::array<epoll_event, 128> events;
    while (done_ < shape_.requests) {
      const int n = ::epoll_wait(poll_, events.data(), events.size(), 10'000);
      if (n <= 0) Die("the floor waits in vain");
      for (int i = 0; i < n; ++i) {
        Receive(sockets_[events[static_cast<size_t>(i)].data.u64]);
      }
    }
  }

 private:
  void Open(Socket& socket, size_t index) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(host_.c_str() + host_.find(':') + 1)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      Die("the floor cannot connect");
    }
    if (context_ != nullptr) {
      socket.ssl = SSL_new(context_);
      SSL_set_fd(socket.ssl, socket.fd);
      if (SSL_connect(socket.ssl) != 1) Die("the floor's handshake fails");
    }
    epoll_event event{.events = EPOLLIN, .data = {.u64 = index}};
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, socket.fd, &event);
    ::fcntl(socket.fd, F_SETFL, ::fcntl(socket.fd, F_GETFL) | O_NONBLOCK);
  }

  void Send(Socket& socket) {
    if (sent_ == shape_.requests) return;
    socket.object = sent_++ % kObjects;
    socket.received = socket.head_size = 0;
    socket.head_done = false;
    socket.crc = 0;
    const std::string path = fmt::format("/{}/{}-{}", server_.bucket, shape_.object, socket.object);
    net::HeaderList headers{{"range", fmt::format("bytes=0-{}", shape_.bytes - 1)}};
    signer_.Sign(credentials_,
                 {.method = "GET",
                  .host = host_,
                  .path = path,
                  .query = "",
                  .payload_sha256 = store::s3::kEmptySha256,
                  .unix_time_s = ::time(nullptr)},
                 headers);
    std::string text = "GET " + path + " HTTP/1.1\r\nHost: " + host_ + "\r\n";
    for (const auto& [name, value] : headers) {
      text += name;
      text += ": ";
      text += value;
      text += "\r\n";
    }
    text += "\r\n";
    const int size = static_cast<int>(text.size());
    const bool whole = socket.ssl != nullptr
                           ? SSL_write(socket.ssl, text.data(), size) == size
                           : ::send(socket.fd, text.data(), text.size(), MSG_NOSIGNAL) == size;
    if (!whole) Die("the floor cannot send");
  }

  // Bytes read, 0: none now.
  size_t Read(Socket& socket, void* into, size_t size) {
    if (socket.ssl != nullptr) {
      size_t n = 0;
      if (SSL_read_ex(socket.ssl, into, size, &n) == 1) return n;
      if (SSL_get_error(socket.ssl, 0) != SSL_ERROR_WANT_READ) Die("the floor cannot read");
      return 0;
    }
    const ssize_t n = ::recv(socket.fd, into, size, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) Die("the floor cannot read");
    return n < 0 ? 0 : static_cast<size_t>(n);
  }

  void Receive(Socket& socket) {
    if (!socket.head_done && !ReceiveHead(socket)) return;
    while (socket.received < shape_.bytes) {
      std::byte* const to = socket.buffer + socket.received;
      const size_t wanted = std::min<uint64_t>(shape_.bytes - socket.received, kReadBytes);
      const size_t n = Read(socket, to, wanted);
      if (n == 0) return;
      socket.crc = Crc32c(socket.crc, {to, n});
      socket.received += n;
      if (n < wanted && socket.ssl == nullptr && socket.received < shape_.bytes) return;
    }
    uint32_t& known = crcs_[socket.object];
    if (known == 0) known = socket.crc;
    if (known != socket.crc) Die("the floor got wrong bytes");
    ++done_;
    Send(socket);
  }

  bool ReceiveHead(Socket& socket) {
    const size_t n =
        Read(socket, socket.head.data() + socket.head_size, socket.head.size() - socket.head_size);
    if (n == 0) return false;
    socket.head_size += n;
    const std::string_view text(socket.head.data(), socket.head_size);
    const size_t end = text.find("\r\n\r\n");
    if (end == text.npos) return false;
    if (!text.starts_with("HTTP/1.1 206")) Die("the floor got another answer than 206");
    const std::string length = fmt::format("Content-Length: {}\r\n", shape_.bytes);
    if (text.find(length) == text.npos) Die("the floor got another length");
    socket.head_done = true;
    const size_t spill = text.size() - end - 4;
    std::memcpy(socket.buffer, text.data() + end + 4, spill);
    socket.crc = Crc32c(0, {socket.buffer, spill});
    socket.received = spill;
    return true;
  }

  const Server& server_;
  const Shape& shape_;
  std::vector<uint32_t>& crcs_;
  store::s3::Signer signer_;
  const store::s3::Credentials credentials_{.access_key_id = kAccessKey,
                                            .secret_access_key = kSecretKey};
  SSL_CTX* context_ = nullptr;
  std::string host_;
  int poll_ = -1;
  std::vector<Socket> sockets_;
  size_t sent_ = 0;
  size_t done_ = 0;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

uint32_t Crc32c(uint32_t crc, ByteView bytes) { return HardwareCrc(crc, bytes); }

Measured ThreadUsage() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return {.cpu_s = Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
          .user_s = Seconds(usage.ru_utime),
          .wall_s = now.count()};
}

void Die(const std::string& why) {
  fmt::print(stderr, "http_bench: {}\n", why);
  std::exit(1);
}

Measured RunFloor(const Server& server, const Shape& shape, std::span<std::byte> buffers,
                  std::vector<uint32_t>& crcs) {
  Floor floor(server, shape, crcs);
  floor.Connect(buffers);
  const Measured before = ThreadUsage();
  floor.Run();
  const Measured after = ThreadUsage();
  return {after.cpu_s - before.cpu_s, after.user_s - before.user_s, after.wall_s - before.wall_s};
}

}  // namespace forebay::bench
