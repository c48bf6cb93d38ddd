// Waiting without the GIL, in slices, so that Ctrl-C and other signals are served.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace forebay::python {

inline constexpr std::chrono::milliseconds kSignalSlice{100};

// Counts the threads that are inside a wait without the GIL, so that the interpreter's exit can
// let them leave first: taking the GIL of a dying interpreter would end the process.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  // True: nobody waits any more.
  static bool WaitUntilNone(std::chrono::nanoseconds timeout);
  // In the child of a fork: the waiting threads stayed in the parent.
  static void Forget();
};

// Throws what a signal handler raised (KeyboardInterrupt). Needs the GIL.
void CheckSignals();

// Calls `slice(kSignalSlice)` without the GIL until it returns true. Needs the GIL.
void WaitInSlices(const std::function<bool(std::chrono::nanoseconds)>& slice);

// Runs `work` on a thread of its own and returns its value; a signal leaves it running by itself
// (what it refers to must be its own) and throws. For calls that wait on a store. Needs the GIL.
template <class Work>
auto RunInterruptibly(Work work) {
  using Value = decltype(work());
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Value> value;
  };
  auto shared = std::make_shared<Shared>();
  std::thread([shared, work = std::move(work)]() mutable {
    Value value = work();
    std::lock_guard lock(shared->mutex);
    shared->value.emplace(std::move(value));
    shared->done.notify_all();
  }).detach();
  WaitInSlices([&shared](std::chrono::nanoseconds slice) {
    std::unique_lock lock(shared->mutex);
    return shared->done.wait_for(lock, slice, [&shared] { return shared->value.has_value(); });
  });
  return *std::move(shared->value);
}

}  // namespace forebay::python
