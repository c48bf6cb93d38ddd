// One loop of the fault server: its client connections, its idle upstream connections, its pipes.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sys/event_loop.h"
#include "testing/faults/body_source.h"
#include "testing/faults/directory.h"
#include "testing/faults/plan.h"
#include "testing/faults/sockets.h"
#include "testing/faults/stats.h"

namespace forebay::faults {

class Connection;

struct Limits {
  double idle_s = 60;           // a connection without a request
  double head_s = 30;           // from a request's first byte to the end of its head
  double origin_s = 60;         // until the upstream's head, without any progress
  double transfer_s = 120;      // without any progress of a body
  size_t idle_upstreams = 512;  // kept per loop
};

// What all loops share; constant or thread-safe.
struct Shared {
  Limits limits;
  std::optional<Address> upstream;
  std::unique_ptr<Directory> directory;  // when there is no upstream
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Stats> stats;
};

// Loop thread only, but for the constructor and Make.
class Shard {
 public:
  Shard(std::unique_ptr<sys::EventLoop> loop, const Shared& shared);
  // Stops the loop.
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  sys::EventLoop& loop() { return *loop_; }
  const Shared& shared() const { return shared_; }
  PipePool& pipes() { return pipes_; }
  std::array<char, 64 * 1024>& scratch() { return scratch_; }

  void Adopt(Fd client);
  // The connection is destroyed once its present callback has returned.
  void Retire(Connection* connection);

  struct Upstream {
    Fd fd;
    bool reused = false;
  };
  Result<Upstream> TakeUpstream();
  Result<Upstream> ConnectUpstream();
  // Between two requests.
  void GiveBackUpstream(Fd fd);

  // Any thread, once.
  void Start();
  // Any other thread: closes everything and waits.
  void Stop();

 private:
  void Sweep();
  void DropIdle(int fd);

  const Shared& shared_;
  PipePool pipes_;
  std::array<char, 64 * 1024> scratch_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> retired_;
  std::deque<Fd> idle_upstreams_;         // the latest last
  std::unique_ptr<sys::EventLoop> loop_;  // last: its tasks refer to the rest
};

}  // namespace forebay::faults
