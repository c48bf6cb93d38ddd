// An upstream that says exactly what a test tells it to, one connection after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

class ScriptedUpstream {
 public:
  // `serve` owns the connection `fd` (blocking) until it returns; `index` counts connections.
  using Serve = std::function<void(ScriptedUpstream&, int fd, int index)>;
  explicit ScriptedUpstream(Serve serve);
  ~ScriptedUpstream();

  std::string url() const;
  // Reads until `end` was seen; what was read. "" when the connection ended before.
  std::string ReadUntil(int fd, std::string_view end);
  void Write(int fd, std::string_view bytes);
  // Waits up to ten seconds for that many requests to have been noted by ReadUntil.
  bool WaitForRequests(size_t count) FB_EXCLUDES(mutex_);
  std::vector<std::string> requests() FB_EXCLUDES(mutex_);

 private:
  void Run(const Serve& serve);

  Fd listener_;
  Address address_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> client_ = -1;
  Mutex mutex_;
  std::condition_variable_any noted_;
  std::vector<std::string> requests_ FB_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace forebay::faults
