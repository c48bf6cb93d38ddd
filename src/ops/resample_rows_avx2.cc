// The two passes by AVX2. A weight of up to 24 bits is multiplied in two parts of 16, two pixels at
// a time; the sums are those of 32 bits that the definition has, as they agree modulo 2^32.
#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/resample_rows.h"

namespace forebay::ops {
namespace {

#define FB_AVX2 [[gnu::target("avx2"), gnu::always_inline]] inline

struct Sums {
  __m256i low, high;
};

FB_AVX2 void Add(__m256i pixels, __m256i low, __m256i high, Sums* sums) {
  sums->low = _mm256_add_epi32(sums->low, _mm256_madd_epi16(pixels, low));
  sums->high = _mm256_add_epi32(sums->high, _mm256_madd_epi16(pixels, high));
}

FB_AVX2 __m256i Finish(const Sums& sums) {
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  const __m256i sum =
      _mm256_add_epi32(_mm256_add_epi32(sums.low, half), _mm256_slli_epi32(sums.high, kLowBits));
  return _mm256_srai_epi32(sum, kWeightBits);
}

FB_AVX2 __m128i Load8(const uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
FB_AVX2 __m128i Load16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// One output pixel of two rows, one in each half: two input pixels of each at a time.
FB_AVX2 __m256i PixelOfTwoRows(const int32_t* pairs, int32_t count, const uint8_t* above,
                               const uint8_t* below) {
  const __m256i side_by_side = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  Sums sums = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int32_t i = 0; i < count; ++i, pairs += 2, above += 6, below += 6) {
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(Load8(above)), Load8(below), 1);
    Add(_mm256_shuffle_epi8(both, side_by_side), _mm256_set1_epi32(pairs[0]),
        _mm256_set1_epi32(pairs[1]), &sums);
  }
  const __m256i words = _mm256_packs_epi32(Finish(sums), _mm256_setzero_si256());
  return _mm256_packus_epi16(words, words);
}

[[gnu::target("avx2")]] void ColumnsOfTwoRows(const AxisWeights& weights, int64_t first,
                                              const uint8_t* above, const uint8_t* below,
                                              uint8_t* to_above, uint8_t* to_below) {
  constexpr size_t kPixel = 3;
  const int32_t* pairs = weights.pairs.data();
  for (size_t i = 0; i < weights.spans.size(); ++i, pairs += weights.stride) {
    const auto from = static_cast<size_t>(weights.spans[i].first - first) * kPixel;
    const __m256i pixels = PixelOfTwoRows(pairs, weights.pairs_of(i), above + from, below + from);
    const int32_t one = _mm256_extract_epi32(pixels, 0), other = _mm256_extract_epi32(pixels, 4);
    std::memcpy(to_above + kPixel * i, &one, kPixel);
    std::memcpy(to_below + kPixel * i, &other, kPixel);
  }
}

// Sixteen bytes of an output row: two input rows at a time.
[[gnu::target("avx2")]] inline void SixteenOfRow(const int32_t* pairs, int32_t count,
                                                 const uint8_t* from, size_t stride,
                                                 const uint8_t* last, uint8_t* to) {
  Sums first = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  Sums second = first;
  for (int32_t i = 0; i < count; ++i, pairs += 2, from += 2 * stride) {
    const __m128i above = Load16(from);
    // Of an odd number the last has no other, and a weight of 0 for it.
    const __m128i below = Load16(std::min(from + stride, last));
    const __m256i low = _mm256_set1_epi32(pairs[0]), high = _mm256_set1_epi32(pairs[1]);
    Add(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(above, below)), low, high, &first);
    Add(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(above, below)), low, high, &second);
  }
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(Finish(first), Finish(second)), 0xD8);
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

}  // namespace

void ResampleColumnsAvx2(const AxisWeights& weights, int64_t first, const ImageView& from,
                         Image* into) {
  for (int64_t y = 0; y < from.height; y += 2) {
    const int64_t other = std::min(y + 1, from.height - 1);
    ColumnsOfTwoRows(weights, first, from.Row(y), from.Row(other), into->Row(y), into->Row(other));
  }
}

// The last bytes of a row are done as part of the sixteen that end there; of a row of less than
// sixteen, by the definition.
void ResampleRowsAvx2(const AxisWeights& weights, int64_t first, const ImageView& from,
                      Image* into) {
  constexpr size_t kAtOnce = 16;
  const size_t bytes = from.row_bytes();
  if (bytes < kAtOnce) return ResampleRowsPlain(weights, first, from, into);
  const int32_t* pairs = weights.pairs.data();
  for (int64_t y = 0; y < into->view().height; ++y, pairs += weights.stride) {
    const auto at = static_cast<size_t>(y);
    const AxisWeights::Span& span = weights.spans[at];
    const uint8_t* top = from.Row(span.first - first);
    const uint8_t* last = top + static_cast<size_t>(span.count - 1) * from.stride;
    uint8_t* to = into->Row(y);
    for (size_t x = 0; x < bytes;) {
      SixteenOfRow(pairs, weights.pairs_of(at), top + x, from.stride, last + x, to + x);
      if (x + kAtOnce == bytes) break;
      x = std::min(x + kAtOnce, bytes - kAtOnce);
    }
  }
}

}  // namespace forebay::ops

#endif
