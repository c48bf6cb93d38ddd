#include "net/lean/origin.h"

#include <algorithm>

namespace forebay::net::lean {
namespace {

constexpr size_t kMaxUnusedPeers = 64;

}  // namespace

Connection* Origin::TakeIdle(Time now, std::span<const sys::SocketAddress> avoid) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    turn_ = turn_ + 1 < peers_.size() ? turn_ + 1 : 0;
    Peer& peer = *peers_[turn_];
    if (peer.idle.empty() || now - peer.idle.back()->idle_since >= kMaxIdle) continue;
    if (std::ranges::find(avoid, peer.address) != avoid.end()) continue;
    Connection* connection = peer.idle.back();
    peer.idle.pop_back();
    return connection;
  }
  return nullptr;
}

Peer& Origin::PeerOf(const sys::IpAddress& ip) {
  const sys::SocketAddress address{.ip = ip, .port = port};
  for (const auto& peer : peers_) {
    if (peer->address == address) return *peer;
  }
  if (peers_.size() >= kMaxUnusedPeers) ForgetUnusedPeers();
  peers_.push_back(std::make_unique<Peer>(Peer{.address = address}));
  return *peers_.back();
}

void Origin::ForgetUnusedPeers() {
  std::erase_if(peers_, [](const auto& peer) { return peer->open == 0; });
}

bool Origin::IsUnused() const {
  return waiting_count == 0 && resolving == 0 &&
         std::ranges::all_of(peers_, [](const auto& peer) { return peer->open == 0; });
}

void Origin::LearnHeadBytes(size_t bytes, size_t digits) {
  constexpr size_t kSureHeadMost = 4096;
  constexpr size_t kSlack = 32;  // numbers in a head grow and shrink
  const size_t alike = bytes - std::min(digits, bytes);
  equal_heads_ = alike == last_head_bytes_ && bytes <= kSureHeadMost
                     ? std::min(equal_heads_ + 1, kSureHeads)
                     : 0;
  last_head_bytes_ = alike;
  head_bytes_hint_ = std::clamp<size_t>(bytes + kSlack, 512, 16 * 1024);
}

}  // namespace forebay::net::lean
