// What a process has one of, made on first use and never destroyed; a forked child, in which the
// parent's threads do not exist and its locks may be held for ever, makes its own.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "sys/fd.h"

namespace forebay::sys {

// Of static storage duration. `T` must not need its destructor.
template <class T>
class PerProcess {
 public:
  // Any thread. Two threads that come first may both call `make`; one result is thrown away.
  template <class Make>
  T& Get(Make&& make) {
    const uint64_t process = ProcessId();
    Slot* current = slot_.load(std::memory_order_acquire);
    if (current != nullptr && current->process == process) return current->value;
    auto made = std::unique_ptr<Slot>(new Slot{process, std::forward<Make>(make)(), current});
    if (slot_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) {
      return made.release()->value;
    }
    return current->value;
  }

 private:
  struct Slot {
    uint64_t process;
    T value;
    Slot* previous;  // the parent's, kept reachable
  };
  std::atomic<Slot*> slot_ = nullptr;
};

}  // namespace forebay::sys
