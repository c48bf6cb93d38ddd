#include "testing/faults/shard.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "testing/faults/connection.h"

namespace forebay::faults {
namespace {
constexpr std::chrono::milliseconds kSweep{250};
}

Shard::Shard(std::unique_ptr<sys::EventLoop> loop, const Shared& shared)
    : shared_(shared), loop_(std::move(loop)) {}

Shard::~Shard() { Stop(); }

void Shard::Start() {
  loop_->Post([this] { Sweep(); });
}

void Shard::Stop() {
  loop_->Post([this] {
    while (!connections_.empty()) connections_.begin()->first->Close("server_stopped");
    while (!idle_upstreams_.empty()) DropIdle(idle_upstreams_.back().get());
  });
  loop_->Stop();
}

void Shard::Adopt(Fd client) {
  auto connection = std::make_shared<Connection>(*this, std::move(client));
  Connection* raw = connection.get();
  connections_.emplace(raw, std::move(connection));
  raw->Start();
}

void Shard::Retire(Connection* connection) {
  auto node = connections_.extract(connection);
  if (node.empty()) return;
  // On the way out of a callback of this very connection: it must live until that has returned. A
  // loop that is stopping drops the task, and then the connections go with the shard.
  retired_.push_back(std::move(node.mapped()));
  if (retired_.size() == 1) loop_->Post([this] { retired_.clear(); });
}

void Shard::Sweep() {
  const Time now = loop_->Now();
  std::vector<std::shared_ptr<Connection>> all;
  all.reserve(connections_.size());
  for (const auto& [raw, connection] : connections_) all.push_back(connection);
  for (const auto& connection : all) connection->CheckDeadline(now);
  loop_->PostAt(now + kSweep, [this] { Sweep(); });
}

Result<Shard::Upstream> Shard::TakeUpstream() {
  if (idle_upstreams_.empty()) return ConnectUpstream();
  Fd fd = std::move(idle_upstreams_.back());
  idle_upstreams_.pop_back();
  loop_->Unwatch(fd.get());
  return Upstream{std::move(fd), true};
}

Result<Shard::Upstream> Shard::ConnectUpstream() {
  FB_ASSIGN_OR_RETURN(Fd fd, StartConnect(*shared_.upstream));
  shared_.stats->UpstreamOpened();
  return Upstream{std::move(fd), false};
}

void Shard::GiveBackUpstream(Fd fd) {
  const int number = fd.get();
  // Whatever an idle connection says, it cannot be used any more.
  const Status watched =
      loop_->Watch(number, EPOLLIN | EPOLLRDHUP, [this, number](uint32_t) { DropIdle(number); });
  if (!watched.ok()) return;
  idle_upstreams_.push_back(std::move(fd));
  if (idle_upstreams_.size() > shared_.limits.idle_upstreams) {
    DropIdle(idle_upstreams_.front().get());
  }
}

void Shard::DropIdle(int fd) {
  loop_->Unwatch(fd);
  std::erase_if(idle_upstreams_, [fd](const Fd& idle) { return idle.get() == fd; });
}

}  // namespace forebay::faults
