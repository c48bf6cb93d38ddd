#include "sys/thread.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.h"

namespace forebay::sys {

int CpuCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

Result<std::unique_ptr<NamedThread>> NamedThread::Make(const std::string& name, Task body) {
  std::unique_ptr<NamedThread> made(new NamedThread);
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // inherited by the new thread
  Status status;
  try {
    made->thread_ = std::thread([task = std::move(body), kept = name.substr(0, 15)]() mutable {
      pthread_setname_np(pthread_self(), kept.c_str());
      task();
      task = nullptr;
    });
    made->id_ = made->thread_.get_id();
  } catch (const std::system_error& e) {
    status = Status(Code::kResourceExhausted,
                    fmt::format("cannot start thread '{}': {}", name, e.what()));
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (!status.ok()) return status;
  return made;
}

NamedThread::~NamedThread() { Join(); }

void NamedThread::Join() {
  if (!thread_.joinable()) return;
  FB_ASSERT(!IsCurrent());
  thread_.join();
}

Result<std::unique_ptr<WorkPool>> WorkPool::Make(const Options& options) {
  if (options.threads == 0 || options.queue_limit == 0) {
    return Status(Code::kInvalidArgument, "a work pool needs a thread and a queue");
  }
  std::unique_ptr<WorkPool> pool(new WorkPool(options));
  for (size_t i = 0; i < options.threads; ++i) {
    FB_ASSIGN_OR_RETURN(auto thread, NamedThread::Make(fmt::format("{}-{}", options.name, i),
                                                       [raw = pool.get()] { raw->Work(); }));
    pool->threads_.push_back(std::move(thread));
  }
  return pool;
}

WorkPool::~WorkPool() { Stop(); }

bool WorkPool::TrySubmit(Task& task) {
  {
    MutexLock lock(mutex_);
    if (stopped_ || queue_.size() >= queue_limit_) return false;
    queue_.push_back(std::move(task));
  }
  work_arrived_.notify_one();
  return true;
}

Status WorkPool::Submit(Task task, Time deadline) {
  for (const auto& thread : threads_) FB_ASSERT(!thread->IsCurrent());
  {
    MutexLock lock(mutex_);
    while (!stopped_ && queue_.size() >= queue_limit_) {
      if (deadline == kNever) {
        room_made_.wait(mutex_);
      } else if (room_made_.wait_until(mutex_, deadline) == std::cv_status::timeout &&
                 queue_.size() >= queue_limit_) {
        return Status(Code::kDeadlineExceeded, "the work queue stayed full");
      }
    }
    if (stopped_) return Status(Code::kCancelled, "the work pool has stopped");
    queue_.push_back(std::move(task));
  }
  work_arrived_.notify_one();
  return {};
}

void WorkPool::Work() {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopped_) work_arrived_.wait(mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    room_made_.notify_one();
    task();
  }
}

void WorkPool::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  work_arrived_.notify_all();
  room_made_.notify_all();
  for (const auto& thread : threads_) thread->Join();
}

}  // namespace forebay::sys
