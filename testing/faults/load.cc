// A load for measuring the fault server (docs/faults.md): CONNECTIONS connections on one thread,
// each asking for a range of RANGE bytes of TARGET again and again for SECONDS; bodies are dropped
// in the kernel. Built only when asked for: ninja forebay_faults_load.
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "testing/faults/http_head.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {
namespace {

struct Peer {
  Fd fd;
  bool asked = false;
  std::string head;
  uint64_t left = 0;
};

struct Totals {
  uint64_t bytes = 0;
  uint64_t answers = 0;
  uint64_t errors = 0;
};

// False: this connection is over.
bool Advance(Peer& peer, const std::string& request, Totals& totals) {
  while (true) {
    if (!peer.asked) {
      const Transfer sent = Send(peer.fd.get(), request, false);
      if (sent.io == Io::kWouldBlock) return true;
      if (sent.bytes != request.size()) return false;
      peer.asked = true;
      peer.head.clear();
    } else if (peer.left > 0) {
      const ssize_t n = ::recv(peer.fd.get(), nullptr, peer.left, MSG_TRUNC);
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) return false;
      totals.bytes += static_cast<uint64_t>(n);
      peer.left -= static_cast<uint64_t>(n);
      if (peer.left > 0) continue;
      ++totals.answers;
      peer.asked = false;
    } else {
      // One head at a time, without touching the body behind it.
      std::array<char, 4096> buffer;
      const ssize_t n = ::recv(peer.fd.get(), buffer.data(), buffer.size(), MSG_PEEK);
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) return false;
      const std::string_view seen(buffer.data(), static_cast<size_t>(n));
      const auto end = FindHeadEnd(seen);
      if (!end.ok() || !*end) return false;
      const auto head = ParseResponseHead(seen.substr(0, **end), "GET");
      if (!head.ok() || head->status != 206) return false;
      (void)Receive(peer.fd.get(), buffer.data(), **end);
      peer.left = head->content_length;
    }
  }
}

int Run(const Address& address, const std::string& request, size_t connections, double seconds) {
  const Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<Peer> peers(connections);
  for (size_t i = 0; i < connections; ++i) {
    auto fd = StartConnect(address);
    if (!fd.ok()) return 1;
    peers[i].fd = *std::move(fd);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | static_cast<uint32_t>(EPOLLET),
                      .data = {.u64 = i}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, peers[i].fd.get(), &event);
  }
  Totals totals;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (elapsed() < seconds) {
    std::array<epoll_event, 256> events;
    const int n = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < n; ++i) {
      Peer& peer = peers[events[static_cast<size_t>(i)].data.u64];
      if (!peer.fd.valid() || Advance(peer, request, totals)) continue;
      ++totals.errors;
      peer.fd.Close();
    }
  }
  const double took = elapsed();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto cpu = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  fmt::print(
      "{{\"bytes\":{},\"answers\":{},\"errors\":{},\"wall_s\":{:.3f},\"MB_per_s\":{:.0f},"
      "\"answers_per_s\":{:.0f},\"client_cpu_s\":{:.2f}}}\n",
      totals.bytes, totals.answers, totals.errors, took,
      static_cast<double>(totals.bytes) / took / 1e6, static_cast<double>(totals.answers) / took,
      cpu(usage.ru_utime) + cpu(usage.ru_stime));
  return totals.errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forebay::faults

int main(int argc, char** argv) {
  using namespace forebay::faults;
  if (argc != 6) {
    fmt::print(stderr, "usage: forebay_faults_load HOST:PORT TARGET RANGE CONNECTIONS SECONDS\n");
    return 252;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto address = ResolveAddress(argv[1]);
  if (!address.ok()) return 252;
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nRange: bytes=0-{}\r\n\r\n", argv[2], argv[1],
                  std::atoll(argv[3]) - 1);
  return Run(*address, request, static_cast<size_t>(std::atoll(argv[4])), std::atof(argv[5]));
}
