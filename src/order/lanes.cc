#include "order/lanes.h"

#include "base/assert.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FB_AVX512 [[gnu::target("avx512f,avx512dq")]]
#define FB_AVX512_INLINE [[gnu::target("avx512f,avx512dq"), gnu::always_inline]] inline

namespace forebay::order {
namespace {

FB_AVX512_INLINE __m512i All(uint64_t value) {
  return _mm512_set1_epi64(static_cast<int64_t>(value));
}

FB_AVX512_INLINE __m512i Mix(__m512i x) {
  x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 30));
  x = _mm512_mullo_epi64(x, All(0xbf58476d1ce4e5b9ULL));
  x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 27));
  x = _mm512_mullo_epi64(x, All(0x94d049bb133111ebULL));
  return _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
}

// The upper half of the 128 bits of bits * m, m < 2^32.
FB_AVX512_INLINE __m512i Reduce(__m512i bits, __m512i m) {
  const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(bits, 32), m);
  const __m512i low = _mm512_mul_epu32(bits, m);
  return _mm512_srli_epi64(_mm512_add_epi64(high, _mm512_srli_epi64(low, 32)), 32);
}

// x + y modulo m, both below it: what is too small by one m is a large number.
FB_AVX512_INLINE __m512i AddModulo(__m512i x, __m512i y, __m512i m) {
  const __m512i sum = _mm512_add_epi64(x, y);
  return _mm512_min_epu64(sum, _mm512_sub_epi64(sum, m));
}

struct Halves {
  __m512i left;
  __m512i right;
};

// x / a and the rest, x < 2^52: a quotient of doubles is at most one too large.
FB_AVX512_INLINE Halves Divide(__m512i x, uint64_t a) {
  const __m512d quotient =
      _mm512_div_pd(_mm512_cvtepu64_pd(x), _mm512_set1_pd(static_cast<double>(a)));
  __m512i right = _mm512_cvttpd_epu64(quotient);
  __m512i left = _mm512_sub_epi64(x, _mm512_mullo_epi64(right, All(a)));
  const __mmask8 above = _mm512_cmpge_epu64_mask(left, All(a));  // below zero
  right = _mm512_mask_sub_epi64(right, above, right, All(1));
  left = _mm512_mask_add_epi64(left, above, left, All(a));
  return {left, right};
}

}  // namespace

bool HasLanes() {
  static const bool has =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

FB_AVX512 void ForwardLanes(const NetworkOfLanes& network, std::span<uint64_t> values) {
  FB_ASSERT(values.size() % kLanes == 0);
  const __m512i a = All(network.a);
  const __m512i b = All(network.b);
  for (size_t i = 0; i < values.size(); i += kLanes) {
    Halves x = Divide(_mm512_loadu_si512(values.data() + i), network.a);
    for (size_t k = 0; k < network.keys.size(); k += 2) {
      const __m512i of_right = Mix(_mm512_xor_si512(x.right, All(network.keys[k])));
      x.left = AddModulo(x.left, Reduce(of_right, a), a);
      const __m512i of_left = Mix(_mm512_xor_si512(x.left, All(network.keys[k + 1])));
      x.right = AddModulo(x.right, Reduce(of_left, b), b);
    }
    _mm512_storeu_si512(values.data() + i,
                        _mm512_add_epi64(_mm512_mullo_epi64(x.right, a), x.left));
  }
}

FB_AVX512 void AddStepsLanes(std::span<const uint64_t> thresholds, std::span<const uint64_t> deltas,
                             std::span<uint64_t> values) {
  FB_ASSERT(values.size() % kLanes == 0 && thresholds.size() == deltas.size());
  for (size_t i = 0; i < values.size(); i += kLanes) {
    const __m512i x = _mm512_loadu_si512(values.data() + i);
    __m512i sum = x;
    for (size_t k = 0; k < thresholds.size(); ++k) {
      const __mmask8 reached = _mm512_cmpge_epu64_mask(x, All(thresholds[k]));
      sum = _mm512_mask_add_epi64(sum, reached, sum, All(deltas[k]));
    }
    _mm512_storeu_si512(values.data() + i, sum);
  }
}

}  // namespace forebay::order

#else

namespace forebay::order {

bool HasLanes() { return false; }
void ForwardLanes(const NetworkOfLanes&, std::span<uint64_t>) { FB_ASSERT(false); }
void AddStepsLanes(std::span<const uint64_t>, std::span<const uint64_t>, std::span<uint64_t>) {
  FB_ASSERT(false);
}

}  // namespace forebay::order

#endif
