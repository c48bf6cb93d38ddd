#include "order/lanes_by.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FB_AVX2 [[gnu::target("avx2")]]
#define FB_AVX2_INLINE [[gnu::target("avx2"), gnu::always_inline]] inline

namespace forebay::order {
namespace {

constexpr size_t kFour = 4;  // values of a vector

FB_AVX2_INLINE __m256i All(uint64_t value) {
  return _mm256_set1_epi64x(static_cast<int64_t>(value));
}

FB_AVX2_INLINE __m256i Load(const uint64_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

FB_AVX2_INLINE void Store(uint64_t* to, __m256i values) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), values);
}

// Modulo 2^64, by halves of the factors: there is no such instruction.
FB_AVX2_INLINE __m256i Multiply(__m256i x, uint64_t factor) {
  const __m256i low = All(factor);
  const __m256i high = All(factor >> 32);
  const __m256i across =
      _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), low), _mm256_mul_epu32(x, high));
  return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(across, 32));
}

FB_AVX2_INLINE __m256i Mix(__m256i x) {
  x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 30));
  x = Multiply(x, 0xbf58476d1ce4e5b9ULL);
  x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 27));
  x = Multiply(x, 0x94d049bb133111ebULL);
  return _mm256_xor_si256(x, _mm256_srli_epi64(x, 31));
}

// The upper half of the 128 bits of bits * m, m < 2^32.
FB_AVX2_INLINE __m256i Reduce(__m256i bits, __m256i m) {
  const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(bits, 32), m);
  const __m256i low = _mm256_mul_epu32(bits, m);
  return _mm256_srli_epi64(_mm256_add_epi64(high, _mm256_srli_epi64(low, 32)), 32);
}

// x + y modulo m, both below it, m < 2^32.
FB_AVX2_INLINE __m256i AddModulo(__m256i x, __m256i y, __m256i m) {
  const __m256i less = _mm256_sub_epi64(_mm256_add_epi64(x, y), m);
  const __m256i below_zero = _mm256_cmpgt_epi64(_mm256_setzero_si256(), less);
  return _mm256_add_epi64(less, _mm256_and_si256(below_zero, m));
}

struct Halves {
  __m256i left;
  __m256i right;
};

// x / a and the rest, x < 2^52: a quotient of doubles is at most one too large. A double of that
// size behind 2^52 has its integer in the lower bits.
FB_AVX2_INLINE Halves Divide(__m256i x, uint64_t a) {
  const __m256d shift = _mm256_set1_pd(0x1.0p52);
  const __m256i bits = _mm256_castpd_si256(shift);
  const __m256d value = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(x, bits)), shift);
  const __m256d quotient =
      _mm256_floor_pd(_mm256_div_pd(value, _mm256_set1_pd(static_cast<double>(a))));
  __m256i right = _mm256_xor_si256(_mm256_castpd_si256(_mm256_add_pd(quotient, shift)), bits);
  __m256i left = _mm256_sub_epi64(x, _mm256_mul_epu32(right, All(a)));
  const __m256i below_zero = _mm256_cmpgt_epi64(_mm256_setzero_si256(), left);
  right = _mm256_add_epi64(right, below_zero);  // -1
  left = _mm256_add_epi64(left, _mm256_and_si256(below_zero, All(a)));
  return {left, right};
}

// `count` vectors side by side, as each waits for its own multiplications most of the time. Sets
// the lanes of the result where something is n or more.
template <size_t count>
FB_AVX2_INLINE __m256i Forward(const NetworkOfLanes& network, uint64_t n, uint64_t* values) {
  const __m256i a = All(network.a);
  const __m256i b = All(network.b);
  Halves x[count];
  for (size_t i = 0; i < count; ++i) x[i] = Divide(Load(values + i * kFour), network.a);
#pragma GCC unroll 3
  for (size_t k = 0; k < 6; k += 2) {
    __m256i mixed[count];
    const __m256i key = All(network.keys[k]);
    for (size_t i = 0; i < count; ++i) mixed[i] = Mix(_mm256_xor_si256(x[i].right, key));
    for (size_t i = 0; i < count; ++i) x[i].left = AddModulo(x[i].left, Reduce(mixed[i], a), a);
    const __m256i next = All(network.keys[k + 1]);
    for (size_t i = 0; i < count; ++i) mixed[i] = Mix(_mm256_xor_si256(x[i].left, next));
    for (size_t i = 0; i < count; ++i) x[i].right = AddModulo(x[i].right, Reduce(mixed[i], b), b);
  }
  __m256i above = _mm256_setzero_si256();
  for (size_t i = 0; i < count; ++i) {
    const __m256i whole = _mm256_add_epi64(_mm256_mul_epu32(x[i].right, a), x[i].left);
    above = _mm256_or_si256(above, _mm256_cmpgt_epi64(whole, All(n - 1)));
    Store(values + i * kFour, whole);
  }
  return above;
}

}  // namespace

FB_AVX2 bool ForwardByAvx2(const NetworkOfLanes& network, uint64_t n, std::span<uint64_t> values) {
  constexpr size_t kSideBySide = kLanes / kFour;
  __m256i above = _mm256_setzero_si256();
  for (size_t i = 0; i < values.size(); i += kLanes) {
    above = _mm256_or_si256(above, Forward<kSideBySide>(network, n, values.data() + i));
  }
  return _mm256_testz_si256(above, above) != 0;
}

// The comparison is of signed numbers: with the first bit turned they stand in the right order.
FB_AVX2 void AddStepsByAvx2(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                            std::span<uint64_t> values) {
  const __m256i first_bit = All(uint64_t{1} << 63);
  for (size_t i = 0; i < values.size(); i += kLanes) {
    const __m256i x = Load(values.data() + i);
    const __m256i y = Load(values.data() + i + kFour);
    const __m256i turned_x = _mm256_xor_si256(x, first_bit);
    const __m256i turned_y = _mm256_xor_si256(y, first_bit);
    __m256i sum_x = x;
    __m256i sum_y = y;
    for (size_t k = 0; k < thresholds.size(); ++k) {
      const __m256i threshold = _mm256_xor_si256(All(thresholds[k]), first_bit);
      const __m256i delta = All(deltas[k]);
      sum_x = _mm256_add_epi64(sum_x,
                               _mm256_andnot_si256(_mm256_cmpgt_epi64(threshold, turned_x), delta));
      sum_y = _mm256_add_epi64(sum_y,
                               _mm256_andnot_si256(_mm256_cmpgt_epi64(threshold, turned_y), delta));
    }
    Store(values.data() + i, sum_x);
    Store(values.data() + i + kFour, sum_y);
  }
}

}  // namespace forebay::order

#endif
