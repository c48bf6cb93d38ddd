#include "order/lanes.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

#if defined(__x86_64__)

#include "order/lanes_by.h"

namespace forebay::order {
namespace {

using Forward = bool (*)(const NetworkOfLanes&, uint64_t, std::span<uint64_t>);
using AddSteps = void (*)(std::span<const uint64_t>, std::span<const uint64_t>,
                          std::span<uint64_t>);
struct By {
  const char* name;
  bool (*has)();
  Forward forward;
  AddSteps add_steps;
};
constexpr By kAll[] = {
    {"AVX-512", HasAvx512, ForwardByAvx512, AddStepsByAvx512},
    {"AVX2", HasAvx2, ForwardByAvx2, AddStepsByAvx2},
};

uint64_t Round(uint64_t value, uint64_t key, uint64_t m) {
  return static_cast<uint64_t>((static_cast<Wide>(Mix64(value ^ key)) * m) >> 64);
}

uint64_t Plain(const NetworkOfLanes& network, uint64_t x) {
  uint64_t right = x / network.a;
  uint64_t left = x % network.a;
  for (size_t k = 0; k < 6; k += 2) {
    left = (left + Round(right, network.keys[k], network.a)) % network.a;
    right = (right + Round(left, network.keys[k + 1], network.b)) % network.b;
  }
  return right * network.a + left;
}

// Each set of instructions gives what the plain loop does, also at the ends of its ranges.
TEST(Lanes, GiveWhatThePlainLoopGives) {
  constexpr uint64_t kSizes[] = {
      257, 1000, 65536, 800000, 1ULL << 32, 1000000007ULL * 97, (1ULL << 52) - 1, 1ULL << 52};
  for (const By& by : kAll) {
    if (!by.has()) continue;
    for (const uint64_t n : kSizes) {
      NetworkOfLanes network;
      while (network.a * network.a < n) network.a += std::max<uint64_t>(network.a / 64, 1);
      network.b = (n + network.a - 1) / network.a;
      Random random(n);
      for (uint64_t& key : network.keys) key = random.Next();
      std::vector<uint64_t> values;
      for (uint64_t i = 0; i < 128; ++i) values.push_back(i < 64 ? i : n - 1 - (i - 64));
      for (uint64_t i = 0; i < 64; ++i) values.push_back(i * network.a % n);
      while (values.size() < 4096 + 8) values.push_back(random.NextBelow(n));
      std::vector<uint64_t> again = values;
      std::vector<uint64_t> expected;
      bool below = true;
      for (const uint64_t x : values) {
        expected.push_back(Plain(network, x));
        below = below && expected.back() < n;
      }
      ASSERT_EQ(by.forward(network, n, values), below) << by.name << " " << n;
      ASSERT_EQ(values, expected) << by.name << " " << n;
      // Where all fits, that is said: the domain as large as the network.
      ASSERT_TRUE(by.forward(network, network.a * network.b, again)) << by.name << " " << n;
    }
  }
}

TEST(Lanes, AddTheStepsThatAreReached) {
  constexpr uint64_t kTop = ~uint64_t{0};
  const std::vector<uint64_t> thresholds = {0, 8, 9, 1ULL << 33, 1ULL << 63, kTop};
  const std::vector<uint64_t> deltas = {1, 100, kTop, 1ULL << 40, 7, 5};
  std::vector<uint64_t> values = {
      0, 7, 8, 9, (1ULL << 33) - 1, 1ULL << 33, (1ULL << 63) - 1, 1ULL << 63, kTop - 1, kTop, 1, 2,
      3, 4, 5, 6};
  std::vector<uint64_t> expected;
  for (const uint64_t x : values) {
    uint64_t sum = x;
    for (size_t k = 0; k < deltas.size(); ++k) sum += x >= thresholds[k] ? deltas[k] : 0;
    expected.push_back(sum);
  }
  for (const By& by : kAll) {
    if (!by.has()) continue;
    std::vector<uint64_t> found = values;
    by.add_steps(thresholds, deltas, found);
    EXPECT_EQ(found, expected) << by.name;
  }
}

}  // namespace
}  // namespace forebay::order

#endif
