// Time and the thread on which an object lives. sys/EventLoop is the real one; sim/ has a twin with
// virtual time, so that plan, fetch, feed and store run unchanged under simulation.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace forebay {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;
inline constexpr Time kNever = Time::max();

using Task = std::move_only_function<void()>;

class Executor {
 public:
  using TimerId = uint64_t;  // 0 is never given out

  virtual ~Executor() = default;
  virtual Time Now() const = 0;
  // Any thread. `task` runs once on the executor's thread, in the order posted; after the executor
  // has been stopped it is destroyed without running.
  virtual void Post(Task task) = 0;
  // Executor's thread only. Timers of equal time run in the order they were made.
  virtual TimerId PostAt(Time at, Task task) = 0;
  // Executor's thread only. No effect on a timer that ran or is unknown.
  virtual void CancelTimer(TimerId id) = 0;
  virtual bool InThread() const = 0;
};

}  // namespace forebay
