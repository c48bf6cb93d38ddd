// std::mutex with clang's thread-safety annotations (libstdc++'s own is not annotated). Only the
// loop inbox, the work queue, the delivery queue and the buffer pool hold a lock.
#pragma once

#include <mutex>

#if defined(__clang__)
#define FB_TSA(x) __attribute__((x))
#else
#define FB_TSA(x)
#endif
#define FB_GUARDED_BY(m) FB_TSA(guarded_by(m))
#define FB_REQUIRES(m) FB_TSA(requires_capability(m))
#define FB_EXCLUDES(m) FB_TSA(locks_excluded(m))

namespace forebay {

class FB_TSA(capability("mutex")) Mutex {
 public:
  void lock() FB_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() FB_TSA(release_capability()) { mutex_.unlock(); }
  bool try_lock() FB_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class FB_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FB_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() FB_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace forebay
