#include "order/lanes_by.h"

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

// `count` vectors side by side, as each waits for its own multiplications most of the time.
template <size_t count>
FB_AVX512_INLINE __mmask8 Forward(const NetworkOfLanes& network, uint64_t n, uint64_t* values) {
  const __m512i a = All(network.a);
  const __m512i b = All(network.b);
  Halves x[count];
  for (size_t i = 0; i < count; ++i) {
    x[i] = Divide(_mm512_loadu_si512(values + i * kLanes), network.a);
  }
#pragma GCC unroll 3
  for (size_t k = 0; k < 6; k += 2) {
    __m512i mixed[count];
    const __m512i key = All(network.keys[k]);
    for (size_t i = 0; i < count; ++i) mixed[i] = Mix(_mm512_xor_si512(x[i].right, key));
    for (size_t i = 0; i < count; ++i) x[i].left = AddModulo(x[i].left, Reduce(mixed[i], a), a);
    const __m512i next = All(network.keys[k + 1]);
    for (size_t i = 0; i < count; ++i) mixed[i] = Mix(_mm512_xor_si512(x[i].left, next));
    for (size_t i = 0; i < count; ++i) x[i].right = AddModulo(x[i].right, Reduce(mixed[i], b), b);
  }
  __mmask8 above = 0;
  for (size_t i = 0; i < count; ++i) {
    const __m512i whole = _mm512_add_epi64(_mm512_mullo_epi64(x[i].right, a), x[i].left);
    above |= _mm512_cmpge_epu64_mask(whole, All(n));
    _mm512_storeu_si512(values + i * kLanes, whole);
  }
  return above;
}

}  // namespace

FB_AVX512 bool ForwardByAvx512(const NetworkOfLanes& network, uint64_t n,
                               std::span<uint64_t> values) {
  constexpr size_t kSideBySide = 4;
  size_t i = 0;
  __mmask8 above = 0;
  for (; i + kSideBySide * kLanes <= values.size(); i += kSideBySide * kLanes) {
    above |= Forward<kSideBySide>(network, n, values.data() + i);
  }
  for (; i < values.size(); i += kLanes) above |= Forward<1>(network, n, values.data() + i);
  return above == 0;
}

FB_AVX512 void AddStepsByAvx512(std::span<const uint64_t> thresholds,
                                std::span<const uint64_t> deltas, std::span<uint64_t> values) {
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

#endif
