#include "signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <initializer_list>

#include "forebay/options.h"

namespace forebay::cli {
namespace {

// A sender that signals both a process and its group means one: `timeout`, a closing terminal.
constexpr int64_t kOneSignalNs = 200'000'000;

std::atomic<int> g_signal{0};
std::atomic<int64_t> g_first_ns{0};
std::atomic<int> g_keepers{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// What is run for credentials must not stay behind.
[[noreturn]] void End(int signal) {
  EndPrograms();
  _exit(128 + signal);
}

// Async-signal-safe: lock-free atomics, clock_gettime, kill and _exit.
extern "C" void OnSignal(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  if (g_keepers.load() == 0) End(signal);
  int64_t first = 0;
  if (g_first_ns.compare_exchange_strong(first, now)) {
    g_signal.store(signal);
  } else if (now - first >= kOneSignalNs) {
    End(signal);
  }
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
