// SIGINT and SIGTERM: a command that has partial work to keep asks Interrupted() and winds up; all
// others end at once. The exit code is 128 + the signal, as a shell reports it.
#pragma once

namespace forebay::cli {

// First thing in main. The handlers run on the main thread, because Forebay's own threads block
// signals. A second signal always ends the process.
void InstallSignals();
// The signal that came, or 0.
int InterruptSignal();
inline bool Interrupted() { return InterruptSignal() != 0; }

// While one exists, the first signal only sets InterruptSignal().
class KeepPartialWork {
 public:
  KeepPartialWork();
  ~KeepPartialWork();
  KeepPartialWork(const KeepPartialWork&) = delete;
  KeepPartialWork& operator=(const KeepPartialWork&) = delete;
};

}  // namespace forebay::cli
