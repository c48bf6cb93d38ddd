// Threads with names, and a bounded pool of them for work that may block or burn a core (disk
// reads, decoding). Signals are blocked on these threads: they belong to the program's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "forebay/status.h"

namespace forebay::sys {

// Processors this process may run on (its affinity), at least 1.
int CpuCount();

// Joins when destroyed. `name`: 15 characters are kept.
class NamedThread {
 public:
  static Result<std::unique_ptr<NamedThread>> Make(const std::string& name, Task body);
  ~NamedThread();
  NamedThread(const NamedThread&) = delete;
  NamedThread& operator=(const NamedThread&) = delete;

  // Idempotent; not from the thread itself.
  void Join();
  bool IsCurrent() const { return std::this_thread::get_id() == id_.load(); }

 private:
  NamedThread() = default;
  std::thread thread_;
  std::atomic<std::thread::id> id_;  // the body may ask before Make has returned
};

// Runs tasks in the order submitted, on `threads` threads. At most `queue_limit` tasks wait.
class WorkPool {
 public:
  struct Options {
    std::string name;
    size_t threads = 1;
    size_t queue_limit = 1024;
  };

  static Result<std::unique_ptr<WorkPool>> Make(const Options& options);
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Any thread; never waits. False when the queue is full or the pool stopped: then `task` is
  // left as it was, and the caller still owns it.
  bool TrySubmit(Task& task) FB_EXCLUDES(mutex_);
  // Waits while the queue is full, at most until `deadline`. kCancelled once stopped. Not from a
  // thread of the pool.
  Status Submit(Task task, Time deadline = kNever) FB_EXCLUDES(mutex_);
  // Runs what is queued to its end, then joins. Idempotent; not from a thread of the pool.
  void Stop() FB_EXCLUDES(mutex_);

  size_t thread_count() const { return thread_count_; }

 private:
  explicit WorkPool(const Options& options)
      : queue_limit_(options.queue_limit), thread_count_(options.threads) {}
  void Work() FB_EXCLUDES(mutex_);

  const size_t queue_limit_;
  const size_t thread_count_;
  Mutex mutex_;
  std::condition_variable_any work_arrived_;
  std::condition_variable_any room_made_;
  std::deque<Task> queue_ FB_GUARDED_BY(mutex_);
  bool stopped_ FB_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<NamedThread>> threads_;  // written by Make and Stop alone
};

}  // namespace forebay::sys
