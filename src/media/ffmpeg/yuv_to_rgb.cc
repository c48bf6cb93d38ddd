#include "media/ffmpeg/yuv_to_rgb.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace forebay::media::ffmpeg {
namespace {

constexpr int kBits = 13;
constexpr int kHalf = 1 << (kBits - 1);

uint8_t Clip(int32_t value) { return static_cast<uint8_t>(std::clamp(value >> kBits, 0, 255)); }

int16_t Fixed(double value) { return static_cast<int16_t>(std::lround(value * (1 << kBits))); }

#if defined(__x86_64__)

// Sixteen 16-bit values of each: a * ca + b * cb + c, scaled back; lanes keep their order because
// unpacking and packing work within the same halves.
struct Pair {
  __m256i low, high;
};

[[gnu::target("avx2"), gnu::always_inline]] inline Pair Multiply(__m256i a, __m256i b,
                                                                 __m256i coefficients) {
  return {_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), coefficients),
          _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), coefficients)};
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i Scale(Pair sum) {
  return _mm256_packs_epi32(_mm256_srai_epi32(sum.low, kBits), _mm256_srai_epi32(sum.high, kBits));
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i Two(int16_t first, int16_t second) {
  const auto low = static_cast<uint32_t>(static_cast<uint16_t>(first));
  const auto high = static_cast<uint32_t>(static_cast<uint16_t>(second));
  return _mm256_set1_epi32(static_cast<int>(high << 16 | low));
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i Chroma(const uint8_t* from, int x,
                                                                  int shift) {
  __m128i bytes;
  if (shift == 0) {
    bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + x));
  } else {
    bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + (x >> 1)));
    bytes = _mm_unpacklo_epi8(bytes, bytes);
  }
  return _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(128));
}

// Sixteen pixels, 48 bytes: per half, r and g of eight pixels in one register, b in the other.
[[gnu::target("avx2"), gnu::always_inline]] inline void StorePacked(__m256i r, __m256i g, __m256i b,
                                                                    uint8_t* to) {
  const __m256i rg = _mm256_packus_epi16(r, g);
  const __m256i bb = _mm256_packus_epi16(b, b);
  const __m256i rg_first = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 8, -1, 1, 9, -1, 2, 10, -1, 3, 11, -1, 4, 12, -1, 5));
  const __m256i b_first = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1));
  const __m256i rg_rest = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(13, -1, 6, 14, -1, 7, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m256i b_rest = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m256i first =
      _mm256_or_si256(_mm256_shuffle_epi8(rg, rg_first), _mm256_shuffle_epi8(bb, b_first));
  const __m256i rest =
      _mm256_or_si256(_mm256_shuffle_epi8(rg, rg_rest), _mm256_shuffle_epi8(bb, b_rest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(first));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 16), _mm256_castsi256_si128(rest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 24), _mm256_extracti128_si256(first, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 40), _mm256_extracti128_si256(rest, 1));
}

[[gnu::target("avx2"), gnu::always_inline]] inline void StorePlane(__m256i values, uint8_t* to) {
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(values, values), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
}

// Whole groups of sixteen pixels; how many pixels that were.
[[gnu::target("avx2")]] int YuvToRgbAvx2(const YuvRow& from, const YuvCoefficients& c, int width,
                                         const RgbRow& to) {
  const __m256i red = Two(c.y, c.red_v);
  const __m256i blue = Two(c.y, c.blue_u);
  const __m256i green = Two(c.y, c.green_u);
  const __m256i green_rest = Two(c.green_v, kHalf);
  const __m256i half = _mm256_set1_epi32(kHalf);
  const __m256i one = _mm256_set1_epi16(1);
  const __m256i offset = _mm256_set1_epi16(c.offset);
  int x = 0;
  for (; x + 16 <= width; x += 16) {
    const __m128i luma = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.y + x));
    const __m256i y = _mm256_sub_epi16(_mm256_cvtepu8_epi16(luma), offset);
    const __m256i u = Chroma(from.u, x, from.chroma_shift);
    const __m256i v = Chroma(from.v, x, from.chroma_shift);
    Pair r = Multiply(y, v, red), b = Multiply(y, u, blue), g = Multiply(y, u, green);
    const Pair rest = Multiply(v, one, green_rest);
    r = {_mm256_add_epi32(r.low, half), _mm256_add_epi32(r.high, half)};
    b = {_mm256_add_epi32(b.low, half), _mm256_add_epi32(b.high, half)};
    g = {_mm256_add_epi32(g.low, rest.low), _mm256_add_epi32(g.high, rest.high)};
    if (to.step == 3) {
      StorePacked(Scale(r), Scale(g), Scale(b), to.r + 3 * x);
    } else {
      StorePlane(Scale(r), to.r + x);
      StorePlane(Scale(g), to.g + x);
      StorePlane(Scale(b), to.b + x);
    }
  }
  return x;
}

#endif

}  // namespace

YuvCoefficients MakeYuvCoefficients(double kr, double kb, bool full_range) {
  const double kg = 1 - kr - kb;
  const double luma = full_range ? 1.0 : 255.0 / 219.0;
  const double chroma = full_range ? 1.0 : 255.0 / 224.0;
  return {.offset = static_cast<int16_t>(full_range ? 0 : 16),
          .y = Fixed(luma),
          .red_v = Fixed(chroma * 2 * (1 - kr)),
          .green_u = Fixed(-chroma * 2 * (1 - kb) * kb / kg),
          .green_v = Fixed(-chroma * 2 * (1 - kr) * kr / kg),
          .blue_u = Fixed(chroma * 2 * (1 - kb))};
}

void YuvToRgbPlain(const YuvRow& from, const YuvCoefficients& c, int begin, int end,
                   const RgbRow& to) {
  for (int x = begin; x < end; ++x) {
    const int y = from.y[x] - c.offset;
    const int u = from.u[x >> from.chroma_shift] - 128;
    const int v = from.v[x >> from.chroma_shift] - 128;
    to.r[x * to.step] = Clip(y * c.y + v * c.red_v + kHalf);
    to.g[x * to.step] = Clip(y * c.y + u * c.green_u + v * c.green_v + kHalf);
    to.b[x * to.step] = Clip(y * c.y + u * c.blue_u + kHalf);
  }
}

void YuvToRgb(const YuvRow& from, const YuvCoefficients& c, int width, const RgbRow& to) {
  int done = 0;
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) done = YuvToRgbAvx2(from, c, width, to);
#endif
  YuvToRgbPlain(from, c, done, width, to);
}

}  // namespace forebay::media::ffmpeg
