#include "sys/event_loop.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/prefetch.h"
#include "sys/thread.h"

namespace forebay::sys {
namespace {

static_assert(kReadable == EPOLLIN && kWritable == EPOLLOUT && kError == EPOLLERR &&
              kHangup == EPOLLHUP && kPeerClosed == EPOLLRDHUP && kEdgeTriggered == EPOLLET);

constexpr int kMaxEvents = 128;
constexpr uint64_t kWakeTag = std::numeric_limits<uint64_t>::max();

Status OsError(const char* call) {
  const int error = errno;
  return Status(error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC
                    ? Code::kResourceExhausted
                    : Code::kInternal,
                fmt::format("{}: {}", call, std::strerror(error)));
}

class EpollLoop final : public EventLoop {
 public:
  EpollLoop(int epoll_fd, int wake_fd) : epoll_fd_(epoll_fd), wake_fd_(wake_fd) {}

  ~EpollLoop() override {
    Stop();
    ::close(wake_fd_);
    ::close(epoll_fd_);
  }

  Status Run(const std::string& name) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeTag}};
    if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) != 0) return OsError("epoll_ctl");
    FB_ASSIGN_OR_RETURN(thread_, NamedThread::Make(name, [this] { Loop(); }));
    return {};
  }

  Time Now() const override { return std::chrono::steady_clock::now(); }
  bool InThread() const override {
    return thread_id_.load(std::memory_order_acquire) == std::this_thread::get_id();
  }
  void Post(Task task) override FB_EXCLUDES(mutex_);
  TimerId PostAt(Time at, Task task) override;
  void CancelTimer(TimerId id) override;
  Status Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_events,
               std::function<void(int)> expect) override;
  Status ChangeWatch(int fd, uint32_t events) override;
  void Unwatch(int fd) override;
  void Stop() override FB_EXCLUDES(mutex_);

 private:
  struct Callbacks {
    std::function<void(uint32_t)> on_events;
    std::function<void(int)> expect;  // may be empty
  };
  struct Watcher {
    uint32_t generation = 0;  // 0: nothing is watched
    std::unique_ptr<Callbacks> callbacks;
  };

  // Null: it is not watched.
  Watcher* Find(int fd) {
    const auto at = static_cast<size_t>(fd);
    return at < watchers_.size() && watchers_[at].generation != 0 ? &watchers_[at] : nullptr;
  }
  void Loop();
  bool MaySleep() FB_EXCLUDES(mutex_);
  int Wait(epoll_event* events);
  void Dispatch(const epoll_event& event);
  void Expect(std::span<const epoll_event> coming) const;
  void RunTimers();
  void FreeRetired();
  // False once the stop was asked for and everything posted before it has run.
  bool RunInbox() FB_EXCLUDES(mutex_);
  void Wake();

  const int epoll_fd_;
  const int wake_fd_;
  std::atomic<std::thread::id> thread_id_;

  Mutex mutex_;
  std::vector<Task> inbox_ FB_GUARDED_BY(mutex_);
  bool stopping_ FB_GUARDED_BY(mutex_) = false;
  bool sleeping_ FB_GUARDED_BY(mutex_) = false;  // or about to: a post has to wake it

  // Loop thread only.
  std::vector<Task> running_;
  std::map<std::pair<Time, TimerId>, Task> timers_;
  std::unordered_map<TimerId, Time> timer_times_;
  TimerId last_timer_ = 0;
  std::vector<Watcher> watchers_;  // by descriptor
  // Unwatched while its callback may be running.
  std::vector<std::unique_ptr<Callbacks>> retired_;
  uint32_t last_generation_ = 0;
  bool has_pwait2_ = true;

  std::unique_ptr<NamedThread> thread_;  // last: ends before the rest goes
};

void EpollLoop::Wake() {
  const uint64_t one = 1;
  ssize_t n = 0;
  do {
    n = ::write(wake_fd_, &one, sizeof one);
  } while (n < 0 && errno == EINTR);
  // EAGAIN: the counter is full, so the loop is awake already.
}

void EpollLoop::Post(Task task) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (stopping_) return;  // `task` is destroyed by the caller's frame, outside the lock
    // The loop's own thread looks at the inbox before it sleeps.
    wake = std::exchange(sleeping_, false) && !InThread();
    inbox_.push_back(std::move(task));
  }
  if (wake) Wake();
}

Executor::TimerId EpollLoop::PostAt(Time at, Task task) {
  FB_ASSERT(InThread());
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(at, id), std::move(task));
  timer_times_.emplace(id, at);
  return id;
}

void EpollLoop::CancelTimer(TimerId id) {
  FB_ASSERT(InThread());
  const auto found = timer_times_.find(id);
  if (found == timer_times_.end()) return;
  auto node = timers_.extract({found->second, id});
  timer_times_.erase(found);
  // `node` dies here, after the maps are consistent: its destructor may run the owner's code.
}

Status EpollLoop::Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_events,
                        std::function<void(int)> expect) {
  FB_ASSERT(InThread());
  if (++last_generation_ > 0x7fffffffU) last_generation_ = 1;
  const uint32_t generation = last_generation_;
  epoll_event event{.events = events,
                    .data = {.u64 = (uint64_t{generation} << 32) | static_cast<uint32_t>(fd)}};
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) return OsError("epoll_ctl add");
  const auto at = static_cast<size_t>(fd);
  if (at >= watchers_.size()) watchers_.resize(at + 1);
  // A descriptor may have been closed without being unwatched.
  if (watchers_[at].callbacks != nullptr) retired_.push_back(std::move(watchers_[at].callbacks));
  watchers_[at].generation = generation;
  watchers_[at].callbacks =
      std::make_unique<Callbacks>(Callbacks{std::move(on_events), std::move(expect)});
  return {};
}

Status EpollLoop::ChangeWatch(int fd, uint32_t events) {
  FB_ASSERT(InThread());
  const Watcher* watcher = Find(fd);
  if (watcher == nullptr) return Status(Code::kInternal, "this descriptor is not watched");
  epoll_event event{
      .events = events,
      .data = {.u64 = (uint64_t{watcher->generation} << 32) | static_cast<uint32_t>(fd)}};
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) != 0) return OsError("epoll_ctl mod");
  return {};
}

void EpollLoop::Unwatch(int fd) {
  FB_ASSERT(InThread());
  Watcher* watcher = Find(fd);
  if (watcher == nullptr) return;
  watcher->generation = 0;
  retired_.push_back(std::move(watcher->callbacks));
  // A descriptor closed before it was unwatched has left epoll by itself: then this fails, rightly.
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

// Whether nothing was posted since the inbox was run.
bool EpollLoop::MaySleep() {
  const MutexLock lock(mutex_);
  sleeping_ = inbox_.empty() && !stopping_;
  return sleeping_;
}

int EpollLoop::Wait(epoll_event* events) {
  if (!MaySleep()) return ::epoll_wait(epoll_fd_, events, kMaxEvents, 0);
  if (timers_.empty()) return ::epoll_wait(epoll_fd_, events, kMaxEvents, -1);
  const Duration left = std::max(Duration::zero(), timers_.begin()->first.first - Now());
  if (has_pwait2_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    const int n = ::epoll_pwait2(epoll_fd_, events, kMaxEvents, &wait, nullptr);
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return n;
    has_pwait2_ = false;  // a kernel before 5.11, or a seccomp filter of its time
  }
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return ::epoll_wait(epoll_fd_, events, kMaxEvents,
                      static_cast<int>(std::min<int64_t>(ms, 60'000)));
}

void EpollLoop::Dispatch(const epoll_event& event) {
  if (event.data.u64 == kWakeTag) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_fd_, &count, sizeof count);
    return;
  }
  const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
  const Watcher* watcher = Find(fd);
  // An earlier callback of this round may have unwatched it, and the number be another file's now.
  if (watcher == nullptr || watcher->generation != event.data.u64 >> 32) return;
  // Survives Unwatch, and the table's growth, from inside.
  watcher->callbacks->on_events(event.events);
}

// `coming`: the events that follow the one to be dispatched. Of a thousand connections none finds
// its state in the cache when its turn comes. Another's turn is long enough to bring it there, but
// not what a pointer leads to that is not there either.
void EpollLoop::Expect(std::span<const epoll_event> coming) const {
  constexpr size_t kTurns = kExpectTurns;
  const auto fd = [&](size_t i) { return static_cast<uint32_t>(coming[i].data.u64); };
  if (coming.size() > kTurns + 1 && fd(kTurns + 1) < watchers_.size()) {
    __builtin_prefetch(&watchers_[fd(kTurns + 1)]);
  }
  if (coming.size() > kTurns && fd(kTurns) < watchers_.size()) {
    Prefetch(watchers_[fd(kTurns)].callbacks.get(), sizeof(Callbacks));
  }
  for (size_t i = 0; i < std::min(kTurns, coming.size()); ++i) {
    if (fd(i) >= watchers_.size() || watchers_[fd(i)].generation == 0) continue;
    const Callbacks& callbacks = *watchers_[fd(i)].callbacks;
    if (callbacks.expect) callbacks.expect(static_cast<int>(i) + 1);
  }
}

void EpollLoop::RunTimers() {
  if (timers_.empty()) return;
  const Time now = Now();
  // Timers made meanwhile wait for the next round, so that a chain of due timers cannot starve I/O.
  const TimerId last = last_timer_;
  auto next = timers_.begin();
  while (next != timers_.end() && next->first.first <= now) {
    if (next->first.second > last) {
      ++next;
      continue;
    }
    auto node = timers_.extract(next);
    timer_times_.erase(node.key().second);
    node.mapped()();
    next = timers_.begin();
  }
}

bool EpollLoop::RunInbox() {
  bool stopping = false;
  {
    MutexLock lock(mutex_);
    running_.swap(inbox_);
    stopping = stopping_;
    sleeping_ = false;
  }
  for (Task& task : running_) {
    task();
    task = nullptr;
  }
  running_.clear();
  return !stopping;
}

// Their destructors may run code that unwatches others.
void EpollLoop::FreeRetired() {
  while (!retired_.empty()) {
    const auto gone = std::exchange(retired_, {});
  }
}

void EpollLoop::Loop() {
  thread_id_.store(std::this_thread::get_id(), std::memory_order_release);
  std::array<epoll_event, kMaxEvents> events;
  while (RunInbox()) {
    const int n = Wait(events.data());
    FB_ASSERT(n >= 0 || errno == EINTR);
    const std::span<const epoll_event> ready(events.data(), static_cast<size_t>(std::max(n, 0)));
    for (size_t i = 0; i < ready.size(); ++i) {
      Expect(ready.subspan(i + 1));
      Dispatch(ready[i]);
    }
    RunTimers();
    FreeRetired();
  }
  // What is left is destroyed here, on the thread where its objects live.
  while (!timers_.empty()) CancelTimer(timers_.begin()->first.second);
  for (size_t fd = 0; fd < watchers_.size(); ++fd) Unwatch(static_cast<int>(fd));
  FreeRetired();
}

void EpollLoop::Stop() {
  FB_ASSERT(!InThread());
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_ != nullptr) thread_->Join();
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Make(std::string name) {
  const int epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return OsError("epoll_create1");
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    Status status = OsError("eventfd");
    ::close(epoll_fd);
    return status;
  }
  auto loop = std::make_unique<EpollLoop>(epoll_fd, wake_fd);
  FB_RETURN_IF_ERROR(loop->Run(name));
  return std::unique_ptr<EventLoop>(std::move(loop));
}

}  // namespace forebay::sys
