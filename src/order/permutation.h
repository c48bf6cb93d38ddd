// An exact bijection of [0, n) without memory: a Feistel network over a x b >= n, a = ceil(sqrt n),
// with cycle walking (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). Six rounds:
// three are visibly not random, four already pass. Version 1; its outputs are frozen by tests.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "order/divider.h"

namespace forebay::order {

class Permutation {
 public:
  // n >= 0. Small domains use Fisher-Yates, since a few rounds reach few of n! orders.
  Permutation(uint64_t n, uint64_t key);

  uint64_t size() const { return n_; }
  // i < n. Where position i goes.
  uint64_t At(uint64_t i) const;
  // Each of them replaced by its At. Faster: the steps of several overlap.
  void AtEach(std::span<uint64_t> values) const;
  // At(Inverse(j)) == j.
  uint64_t Inverse(uint64_t j) const;

 private:
  static constexpr int kRounds = 6;
  static constexpr uint64_t kTableMax = 256;

  void AtEachOfFew(std::span<uint64_t> values) const;
  uint64_t Forward(uint64_t x) const;
  uint64_t Backward(uint64_t x) const;

  uint64_t n_;
  Divider a_;
  uint64_t b_ = 1;
  std::array<uint64_t, kRounds> keys_{};
  std::vector<uint16_t> table_;  // n <= kTableMax
  std::vector<uint16_t> inverse_;
};

}  // namespace forebay::order
