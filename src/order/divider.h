// Division by a number that stays, by a multiplication: a machine's 64-bit division takes as long
// as a whole round of a permutation.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace forebay::order {

// Exact for every dividend.
class Divider {
 public:
  Divider() = default;
  // n > 0.
  explicit Divider(uint64_t n)
      : n_(n),
        inverse_(static_cast<uint64_t>((static_cast<Wide>(1) << 64) / n - (n == 1 ? 1 : 0))) {}

  uint64_t divisor() const { return n_; }
  // inverse = floor(2^64 / n), so the product is less than one too small, and so is its floor but
  // for one.
  uint64_t Quotient(uint64_t x) const {
    const auto q = static_cast<uint64_t>((static_cast<Wide>(x) * inverse_) >> 64);
    return x - q * n_ >= n_ ? q + 1 : q;
  }

 private:
  uint64_t n_ = 1;
  uint64_t inverse_ = ~uint64_t{0};
};

}  // namespace forebay::order
