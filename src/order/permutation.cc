#include "order/permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "order/lanes.h"

namespace forebay::order {
namespace {

constexpr uint64_t kLanesMost = uint64_t{1} << 52;  // samples: exact as doubles

// [0, m) from 64 bits, by a 128-bit multiply instead of a division.
uint64_t Reduce(uint64_t bits, uint64_t m) {
  return static_cast<uint64_t>((static_cast<Wide>(bits) * m) >> 64);
}

uint64_t Round(uint64_t value, uint64_t key, uint64_t m) { return Reduce(Mix64(value ^ key), m); }

uint64_t AddMod(uint64_t x, uint64_t y, uint64_t m) { return x >= m - y ? x - (m - y) : x + y; }
uint64_t SubMod(uint64_t x, uint64_t y, uint64_t m) { return x >= y ? x - y : x + (m - y); }

uint64_t CeilSqrt(uint64_t n) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (static_cast<Wide>(root) * root < n) ++root;
  while (root > 0 && static_cast<Wide>(root - 1) * (root - 1) >= n) --root;
  return root;
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n) {
  for (int i = 0; i < kRounds; ++i)
    keys_[static_cast<size_t>(i)] = DeriveKey(key, static_cast<uint64_t>(i) + 1);
  if (n <= kTableMax) {
    table_.resize(n);
    inverse_.resize(n);
    std::iota(table_.begin(), table_.end(), uint16_t{0});
    Random random(DeriveKey(key, 0));
    for (uint64_t i = n; i > 1; --i) std::swap(table_[i - 1], table_[random.NextBelow(i)]);
    for (uint64_t i = 0; i < n; ++i) inverse_[table_[i]] = static_cast<uint16_t>(i);
    return;
  }
  const uint64_t a = CeilSqrt(n);
  a_ = Divider(a);
  b_ = n / a + (n % a > 0 ? 1 : 0);
}

uint64_t Permutation::Forward(uint64_t x) const {
  const uint64_t a = a_.divisor();
  uint64_t right = a_.Quotient(x);
  uint64_t left = x - right * a;
  for (size_t i = 0; i < kRounds; i += 2) {
    left = AddMod(left, Round(right, keys_[i], a), a);
    right = AddMod(right, Round(left, keys_[i + 1], b_), b_);
  }
  return right * a + left;
}

uint64_t Permutation::Backward(uint64_t x) const {
  const uint64_t a = a_.divisor();
  uint64_t right = a_.Quotient(x);
  uint64_t left = x - right * a;
  for (size_t i = kRounds; i > 0; i -= 2) {
    right = SubMod(right, Round(left, keys_[i - 1], b_), b_);
    left = SubMod(left, Round(right, keys_[i - 2], a), a);
  }
  return right * a + left;
}

uint64_t Permutation::At(uint64_t i) const {
  FB_ASSERT(i < n_);
  if (!table_.empty()) return table_[i];
  do {
    i = Forward(i);
  } while (i >= n_);
  return i;
}

void Permutation::AtEach(std::span<uint64_t> values) const {
  size_t done = 0;
  if (table_.empty() && n_ <= kLanesMost && HasLanes()) {
    done = values.size() / kLanes * kLanes;
    const auto lanes = values.first(done);
    uint64_t all = 0;
    for (const uint64_t value : lanes) all |= (n_ - 1 - value);
    FB_ASSERT(all >> 63 == 0);  // none is n or more
    const bool whole = ForwardLanes({a_.divisor(), b_, keys_}, n_, lanes);
    for (size_t i = 0; !whole && i < done; ++i) {
      while (lanes[i] >= n_) lanes[i] = Forward(lanes[i]);
    }
  }
  AtEachOfFew(values.subspan(done));
}

void Permutation::AtEachOfFew(std::span<uint64_t> values) const {
  constexpr size_t kFew = 4;
  const uint64_t a = a_.divisor();
  size_t done = 0;
  for (; table_.empty() && done + kFew <= values.size(); done += kFew) {
    const auto lanes = values.subspan(done).first<kFew>();
    std::array<uint64_t, kFew> left{};
    std::array<uint64_t, kFew> right{};
    for (size_t k = 0; k < kFew; ++k) {
      FB_ASSERT(lanes[k] < n_);
      right[k] = a_.Quotient(lanes[k]);
      left[k] = lanes[k] - right[k] * a;
    }
    for (size_t i = 0; i < kRounds; i += 2) {
      for (size_t k = 0; k < kFew; ++k) {
        left[k] = AddMod(left[k], Round(right[k], keys_[i], a), a);
        right[k] = AddMod(right[k], Round(left[k], keys_[i + 1], b_), b_);
      }
    }
    for (size_t k = 0; k < kFew; ++k) {
      lanes[k] = right[k] * a + left[k];
      while (lanes[k] >= n_) lanes[k] = Forward(lanes[k]);
    }
  }
  for (; done < values.size(); ++done) values[done] = At(values[done]);
}

uint64_t Permutation::Inverse(uint64_t j) const {
  FB_ASSERT(j < n_);
  if (!table_.empty()) return inverse_[j];
  do {
    j = Backward(j);
  } while (j >= n_);
  return j;
}

}  // namespace forebay::order
