// How many bytes any n things of a data set have together, at most, from a few numbers: the sums of
// the 1, 2, 4, ... largest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace forebay::catalog {

inline constexpr int kLargestSums = 17;  // of 1, 2, 4, ... 65,536

// Of 2^k < count < 2^(k+1) things, the sum is at most that of 2^(k+1), and at most count times the
// mean of the largest 2^k.
inline uint64_t LargestOf(const std::vector<uint64_t>& sums, uint64_t total, uint64_t count) {
  if (count == 0) return 0;
  const auto k = std::min<size_t>(static_cast<size_t>(std::bit_width(count)) - 1, kLargestSums - 1);
  uint64_t most = sums[k];
  if (count > uint64_t{1} << k) {
    const uint64_t mean = (sums[k] >> k) + 1;
    most = count > total / mean ? total : mean * count;
    if (k + 1 < kLargestSums) most = std::min(most, sums[k + 1]);
  }
  return std::min(most, total);
}

class LargestSums {
 public:
  void Add(uint64_t bytes) {
    total_ += bytes;
    largest_.push(bytes);
    if (largest_.size() > size_t{1} << (kLargestSums - 1)) largest_.pop();
  }
  uint64_t total() const { return total_; }
  std::vector<uint64_t> Take() {
    std::vector<uint64_t> sizes;
    for (; !largest_.empty(); largest_.pop()) sizes.push_back(largest_.top());
    std::ranges::reverse(sizes);
    std::vector<uint64_t> sums;
    uint64_t sum = 0;
    size_t taken = 0;
    for (int k = 0; k < kLargestSums; ++k) {
      for (; taken < std::min(sizes.size(), size_t{1} << k); ++taken) sum += sizes[taken];
      sums.push_back(sum);
    }
    return sums;
  }

 private:
  uint64_t total_ = 0;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> largest_;  // least on top
};

}  // namespace forebay::catalog
