// What a transport knows of one scheme://host:port: the addresses it has connections to, the idle
// ones, and who waits for one.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/detail/request.h"
#include "net/lean/connection.h"
#include "net/resolver.h"
#include "sys/tcp.h"

namespace forebay::net::lean {

// S3 closes an idle connection after 5 s or more; a request on one that it has just closed fails.
inline constexpr Duration kMaxIdle = std::chrono::seconds(4);

struct Peer {
  sys::SocketAddress address;
  // The one used last is at the end and is taken first, so that those too many grow old.
  std::vector<Connection*> idle;
  size_t open = 0;  // connections, idle or not
};

class Origin {
 public:
  explicit Origin(const detail::UrlParts& url)
      : name(url.origin), authority(url.authority), host(url.host), port(url.port), tls(url.tls) {}

  // An idle connection that is fresh enough, on an address that is none of `avoid`; the addresses
  // take turns. Null: there is none. It is taken out.
  Connection* TakeIdle(Time now, std::span<const sys::SocketAddress> avoid);
  void AddIdle(Connection& connection) { connection.peer().idle.push_back(&connection); }
  void RemoveIdle(Connection& connection) { std::erase(connection.peer().idle, &connection); }

  Peer& PeerOf(const sys::IpAddress& ip);
  bool IsUnused() const;

  // How much to read at first so that it holds the next head and little more.
  size_t head_bytes_hint() const { return head_bytes_hint_; }
  // `digits`: of these, what the answer repeats of its request (HttpRequest::head_digits).
  void LearnHeadBytes(size_t bytes, size_t digits);
  // The next head's size, when the last ones were all of one size but for such digits; else 0.
  size_t SureHeadBytes(size_t digits) const {
    return equal_heads_ >= kSureHeads ? last_head_bytes_ + digits : 0;
  }

  const std::string name;
  const std::string authority;
  const std::string host;
  const uint16_t port;
  const bool tls;

  // Exchanges that wait for a connection, by id, the oldest first; those that ended meanwhile are
  // passed over. `waiting_count` counts those that did not.
  std::deque<HttpTransport::RequestId> waiting;
  size_t waiting_count = 0;
  size_t setups = 0;  // connections being made
  Resolver::Ticket resolving = 0;
  TlsSessions sessions;

 private:
  void ForgetUnusedPeers();
  std::vector<std::unique_ptr<Peer>> peers_;
  size_t turn_ = 0;
  size_t head_bytes_hint_ = 1024;
  static constexpr int kSureHeads = 8;
  size_t last_head_bytes_ = 0;  // without the digits
  int equal_heads_ = 0;
};

}  // namespace forebay::net::lean
