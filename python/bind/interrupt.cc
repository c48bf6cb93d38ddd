#include "interrupt.h"

#include <cstdint>

namespace nb = nanobind;

namespace forebay::python {
namespace {

struct WaitingCount {
  std::mutex mutex;
  std::condition_variable none;
  int64_t count = 0;
};

// Never destroyed: daemon threads may outlive static objects.
WaitingCount* waiting_count = new WaitingCount;

}  // namespace

Waiting::Waiting() {
  WaitingCount& waiting = *waiting_count;
  std::lock_guard lock(waiting.mutex);
  ++waiting.count;
}

Waiting::~Waiting() {
  WaitingCount& waiting = *waiting_count;
  std::lock_guard lock(waiting.mutex);
  if (--waiting.count <= 0) waiting.none.notify_all();
}

bool Waiting::WaitUntilNone(std::chrono::nanoseconds timeout) {
  WaitingCount& waiting = *waiting_count;
  std::unique_lock lock(waiting.mutex);
  return waiting.none.wait_for(lock, timeout, [&waiting] { return waiting.count <= 0; });
}

void Waiting::Forget() { waiting_count = new WaitingCount; }

void CheckSignals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void WaitInSlices(const std::function<bool(std::chrono::nanoseconds)>& slice) {
  Waiting waiting;
  while (true) {
    bool done;
    {
      nb::gil_scoped_release release;
      done = slice(kSignalSlice);
    }
    if (done) return;
    CheckSignals();
  }
}

}  // namespace forebay::python
