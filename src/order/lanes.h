// Loops over a batch's positions, eight at a time where the processor can (AVX-512, AVX2). What
// comes out is what the plain loops give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay::order {

// A Feistel network's numbers, see Permutation. `a` and `b` are below 2^32.
struct NetworkOfLanes {
  uint64_t a = 1;
  uint64_t b = 1;
  std::array<uint64_t, 6> keys{};
};

// How many values one step takes.
inline constexpr size_t kLanes = 8;
// Else nothing of what follows may be called.
bool HasLanes();

// `values`: a multiple of kLanes of them, each x = right * a + left; what the rounds make of it.
// False: some of that is `n` or more.
bool ForwardLanes(const NetworkOfLanes& network, uint64_t n, std::span<uint64_t> values);

// Adds to each value the `deltas` of all `thresholds` that it reaches, modulo 2^64.
void AddStepsLanes(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                   std::span<uint64_t> values);

}  // namespace forebay::order
