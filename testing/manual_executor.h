// An Executor whose time stands still until a test moves it: tasks run when asked for, timers fire
// in order of time, and two runs are the same.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "base/executor.h"

namespace forebay::testing {

class ManualExecutor : public Executor {
 public:
  Time Now() const override { return now_; }
  void Post(Task task) override { tasks_.push_back(std::move(task)); }
  TimerId PostAt(Time at, Task task) override {
    const TimerId id = next_timer_++;
    timers_.emplace(std::pair(at, id), std::move(task));
    return id;
  }
  void CancelTimer(TimerId id) override {
    std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; });
  }
  bool InThread() const override { return true; }

  // Runs one task, or moves the time to the next timer and runs that. False: nothing is left.
  bool RunOne() {
    if (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
      return true;
    }
    if (timers_.empty()) return false;
    auto timer = timers_.extract(timers_.begin());
    now_ = std::max(now_, timer.key().first);
    timer.mapped()();
    return true;
  }
  void RunAll() {
    while (RunOne()) {
    }
  }
  // Runs tasks and the timers that are due at the present time.
  void RunReady() {
    while (!tasks_.empty() || (!timers_.empty() && timers_.begin()->first.first <= now_)) RunOne();
  }
  void Advance(Duration by) {
    const Time until = now_ + by;
    RunReady();
    while (!timers_.empty() && timers_.begin()->first.first <= until) {
      RunOne();
      RunReady();
    }
    now_ = until;
  }

 private:
  Time now_{};
  std::deque<Task> tasks_;
  std::map<std::pair<Time, TimerId>, Task> timers_;
  TimerId next_timer_ = 1;
};

}  // namespace forebay::testing
