#include "ops/resample_rows.h"

#include <algorithm>
#include <array>

namespace forebay::ops {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t Clip(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

template <int Channels>
void ColumnsOfRow(const AxisWeights& weights, int64_t first, const uint8_t* from, uint8_t* to) {
  const int32_t* k = weights.weights.data();
  for (const AxisWeights::Span& span : weights.spans) {
    const uint8_t* at = from + (span.first - first) * Channels;
    std::array<int32_t, Channels> sum;
    sum.fill(kHalf);
    for (int32_t i = 0; i < span.count; ++i, at += Channels) {
      for (size_t c = 0; c < Channels; ++c) sum[c] += at[c] * k[i];
    }
    for (size_t c = 0; c < Channels; ++c) *to++ = Clip(sum[c]);
    k += weights.stride;
  }
}

void RowOfRows(const int32_t* k, int32_t count, const uint8_t* from, size_t stride, size_t bytes,
               uint8_t* to) {
  constexpr size_t kAtOnce = 64;
  size_t x = 0;
  for (; x + kAtOnce <= bytes; x += kAtOnce) {
    std::array<int32_t, kAtOnce> sum;
    sum.fill(kHalf);
    for (int32_t i = 0; i < count; ++i) {
      const uint8_t* at = from + static_cast<size_t>(i) * stride + x;
      for (size_t j = 0; j < kAtOnce; ++j) sum[j] += at[j] * k[i];
    }
    for (size_t j = 0; j < kAtOnce; ++j) to[x + j] = Clip(sum[j]);
  }
  for (; x < bytes; ++x) {
    int32_t sum = kHalf;
    for (int32_t i = 0; i < count; ++i) sum += from[static_cast<size_t>(i) * stride + x] * k[i];
    to[x] = Clip(sum);
  }
}

#if defined(__x86_64__)
bool HasAvx2() {
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  return avx2;
}
#endif

}  // namespace

void ResampleColumnsPlain(const AxisWeights& weights, int64_t first, const ImageView& from,
                          Image* into) {
  for (int64_t y = 0; y < from.height; ++y) {
    switch (from.channels) {
      case 1:
        ColumnsOfRow<1>(weights, first, from.Row(y), into->Row(y));
        break;
      case 2:
        ColumnsOfRow<2>(weights, first, from.Row(y), into->Row(y));
        break;
      case 3:
        ColumnsOfRow<3>(weights, first, from.Row(y), into->Row(y));
        break;
      default:
        ColumnsOfRow<4>(weights, first, from.Row(y), into->Row(y));
    }
  }
}

void ResampleRowsPlain(const AxisWeights& weights, int64_t first, const ImageView& from,
                       Image* into) {
  const int32_t* k = weights.weights.data();
  for (int64_t y = 0; y < into->view().height; ++y, k += weights.stride) {
    const AxisWeights::Span& span = weights.spans[static_cast<size_t>(y)];
    RowOfRows(k, span.count, from.Row(span.first - first), from.stride, from.row_bytes(),
              into->Row(y));
  }
}

void ResampleColumns(const AxisWeights& weights, int64_t first, const ImageView& from,
                     Image* into) {
#if defined(__x86_64__)
  if (HasAvx2() && from.channels == 3) return ResampleColumnsAvx2(weights, first, from, into);
#endif
  ResampleColumnsPlain(weights, first, from, into);
}

void ResampleRows(const AxisWeights& weights, int64_t first, const ImageView& from, Image* into) {
#if defined(__x86_64__)
  if (HasAvx2()) return ResampleRowsAvx2(weights, first, from, into);
#endif
  ResampleRowsPlain(weights, first, from, into);
}

}  // namespace forebay::ops
