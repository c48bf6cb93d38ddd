#include "order/lanes.h"

#include "base/assert.h"

#if defined(__x86_64__)

#include "order/lanes_by.h"

namespace forebay::order {

bool HasAvx512() {
  static const bool has =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

bool HasLanes() { return HasAvx512() || HasAvx2(); }

bool ForwardLanes(const NetworkOfLanes& network, uint64_t n, std::span<uint64_t> values) {
  FB_ASSERT(values.size() % kLanes == 0);
  return HasAvx512() ? ForwardByAvx512(network, n, values) : ForwardByAvx2(network, n, values);
}

void AddStepsLanes(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                   std::span<uint64_t> values) {
  FB_ASSERT(values.size() % kLanes == 0 && thresholds.size() == deltas.size());
  if (HasAvx512()) {
    AddStepsByAvx512(thresholds, deltas, values);
  } else {
    AddStepsByAvx2(thresholds, deltas, values);
  }
}

}  // namespace forebay::order

#else

namespace forebay::order {

bool HasLanes() { return false; }
bool ForwardLanes(const NetworkOfLanes&, uint64_t, std::span<uint64_t>) { return false; }
void AddStepsLanes(std::span<const uint64_t>, std::span<const uint64_t>, std::span<uint64_t>) {
  FB_ASSERT(false);
}

}  // namespace forebay::order

#endif
