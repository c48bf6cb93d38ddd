// Virtual time. A world holds any number of executors ("threads"); each runs its tasks in the order
// posted, and which of the ready ones goes next is drawn from the seed. The same seed gives the
// same trace. The product code of plan, fetch, feed and store runs on it unchanged.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <unordered_set>
#include <vector>

#include "base/executor.h"
#include "base/random.h"

namespace forebay::sim {

class World;

class SimExecutor : public Executor {
 public:
  explicit SimExecutor(World& world) : world_(world) {}
  Time Now() const override;
  void Post(Task task) override;
  TimerId PostAt(Time at, Task task) override;
  void CancelTimer(TimerId id) override;
  bool InThread() const override { return true; }

 private:
  friend class World;
  World& world_;
  std::deque<Task> tasks_;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(DeriveKey(seed, HashName("world"))) {}

  // Lives as long as the world.
  SimExecutor& NewExecutor();
  Time now() const { return now_; }
  // Runs one task, or moves the time to the next timer. False: nothing is left to happen.
  bool RunOne();
  // Until `done` or until nothing is left or `until` is reached; true when `done`.
  template <class F>
  bool RunUntil(F done, Time until = kNever) {
    while (!done()) {
      if (now_ >= until || !RunOne()) return false;
    }
    return true;
  }
  uint64_t tasks_run() const { return tasks_run_; }

 private:
  friend class SimExecutor;
  struct Timer {
    Time at;
    uint64_t id;
    SimExecutor* executor;
    mutable Task task;
    bool operator<(const Timer& other) const {  // the queue's top is the greatest
      return at != other.at ? at > other.at : id > other.id;
    }
  };

  Random random_;
  Time now_{};
  std::vector<std::unique_ptr<SimExecutor>> executors_;
  std::vector<SimExecutor*> ready_;  // those with tasks, in any order
  std::priority_queue<Timer> timers_;
  std::unordered_set<uint64_t> cancelled_;
  uint64_t next_timer_ = 1;
  uint64_t tasks_run_ = 0;
};

}  // namespace forebay::sim
