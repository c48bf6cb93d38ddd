#include "signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

namespace forebay::cli {
namespace {

std::atomic<int> g_signal{0};
std::atomic<int> g_keepers{0};
static_assert(std::atomic<int>::is_always_lock_free);

// Async-signal-safe: two lock-free atomics and _exit.
extern "C" void OnSignal(int signal) {
  if (g_signal.exchange(signal) != 0 || g_keepers.load() == 0) _exit(128 + signal);
}

}  // namespace

void InstallSignals() {
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old{};
    // One that was ignored when we started (nohup) stays ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;  // a closed connection or pipe is an error of the write
  sigaction(SIGPIPE, &action, nullptr);
}

int InterruptSignal() { return g_signal.load(); }

KeepPartialWork::KeepPartialWork() { g_keepers.fetch_add(1); }
KeepPartialWork::~KeepPartialWork() { g_keepers.fetch_sub(1); }

}  // namespace forebay::cli
