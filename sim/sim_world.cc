#include "sim/sim_world.h"

#include <algorithm>
#include <utility>

namespace forebay::sim {

Time SimExecutor::Now() const { return world_.now(); }

void SimExecutor::Post(Task task) {
  if (tasks_.empty()) world_.ready_.push_back(this);
  tasks_.push_back(std::move(task));
}

Executor::TimerId SimExecutor::PostAt(Time at, Task task) {
  const uint64_t id = world_.next_timer_++;
  world_.timers_.push({std::max(at, world_.now_), id, this, std::move(task)});
  return id;
}

void SimExecutor::CancelTimer(TimerId id) {
  if (id != 0) world_.cancelled_.insert(id);
}

SimExecutor& World::NewExecutor() {
  executors_.push_back(std::make_unique<SimExecutor>(*this));
  return *executors_.back();
}

bool World::RunOne() {
  if (!ready_.empty()) {
    const size_t pick = random_.NextBelow(ready_.size());
    SimExecutor* executor = ready_[pick];
    Task task = std::move(executor->tasks_.front());
    executor->tasks_.pop_front();
    if (executor->tasks_.empty()) {
      ready_[pick] = ready_.back();
      ready_.pop_back();
    }
    ++tasks_run_;
    task();
    return true;
  }
  while (!timers_.empty()) {
    const Timer& top = timers_.top();
    Task task = std::move(top.task);
    SimExecutor* executor = top.executor;
    const uint64_t id = top.id;
    now_ = std::max(now_, top.at);
    timers_.pop();
    if (cancelled_.erase(id) > 0) continue;
    executor->Post(std::move(task));
    return true;
  }
  return false;
}

}  // namespace forebay::sim
