#include "fork.h"

#include <pthread.h>

#include <atomic>

#include "interrupt.h"

namespace forebay::python {
namespace {

std::atomic<uint64_t> generation{0};

}  // namespace

uint64_t ForkGeneration() {
  static const int kRegistered = pthread_atfork(nullptr, nullptr, [] {
    generation.fetch_add(1, std::memory_order_relaxed);
    Waiting::Forget();
  });
  (void)kRegistered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace forebay::python
