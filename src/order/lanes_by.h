// What lanes.h does, by instructions that not every x86-64 has: only where it has them.
#pragma once

#include "order/lanes.h"

namespace forebay::order {

bool HasAvx512();
bool ForwardByAvx512(const NetworkOfLanes& network, uint64_t n, std::span<uint64_t> values);
void AddStepsByAvx512(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                      std::span<uint64_t> values);

bool HasAvx2();
bool ForwardByAvx2(const NetworkOfLanes& network, uint64_t n, std::span<uint64_t> values);
void AddStepsByAvx2(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                    std::span<uint64_t> values);

}  // namespace forebay::order
