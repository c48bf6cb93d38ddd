// The real Executor: one thread, epoll, an eventfd inbox and timers. Everything that owns a file
// descriptor lives on one of these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "forebay/status.h"

namespace forebay::sys {

// epoll's event bits, for those who may not include its header.
inline constexpr uint32_t kReadable = 0x001;
inline constexpr uint32_t kWritable = 0x004;
inline constexpr uint32_t kError = 0x008;
inline constexpr uint32_t kHangup = 0x010;
inline constexpr uint32_t kPeerClosed = 0x2000;  // told only when asked for
inline constexpr uint32_t kEdgeTriggered = 1U << 31;

inline constexpr int kExpectTurns = 3;

class EventLoop : public Executor {
 public:
  // `name` is the thread's name (15 characters are kept).
  static Result<std::unique_ptr<EventLoop>> Make(std::string name);
  // Stops: runs what was posted before the stop, destroys the rest, joins the thread.
  ~EventLoop() override = default;

  // Loop thread only. `on_events` gets epoll's event bits; the registration is persistent until
  // Unwatch, and level-triggered unless kEdgeTriggered is among `events`. `expect`, when given, may
  // run before `on_events`, while `turns` others are ahead of it: from kExpectTurns down to 1. It
  // prefetches what on_events will read, a pointer further each time, and does nothing else.
  virtual Status Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_events,
                       std::function<void(int turns)> expect = nullptr) = 0;
  virtual Status ChangeWatch(int fd, uint32_t events) = 0;
  virtual void Unwatch(int fd) = 0;
  // Idempotent; not from the loop's own thread. After it returns no task runs any more.
  virtual void Stop() = 0;
};

}  // namespace forebay::sys
