// The two passes of a resize: the inner loops, for the processor at hand. All give the same bytes.
#pragma once

#include <cstdint>

#include "ops/image.h"
#include "ops/resample.h"

namespace forebay::ops {

// Fractional bits of a weight: what is left of 32 when 8 are the pixel's and 2 are spare.
inline constexpr int kWeightBits = 32 - 8 - 2;
// Of a weight, what a signed number of 16 bits holds as it is.
inline constexpr int kLowBits = 15;

// `first` is where `from` begins in what the weights' spans count by.
void ResampleColumns(const AxisWeights& weights, int64_t first, const ImageView& from, Image* into);
void ResampleRows(const AxisWeights& weights, int64_t first, const ImageView& from, Image* into);

// The definition itself.
void ResampleColumnsPlain(const AxisWeights& weights, int64_t first, const ImageView& from,
                          Image* into);
void ResampleRowsPlain(const AxisWeights& weights, int64_t first, const ImageView& from,
                       Image* into);

#if defined(__x86_64__)
// Of three channels.
void ResampleColumnsAvx2(const AxisWeights& weights, int64_t first, const ImageView& from,
                         Image* into);
void ResampleRowsAvx2(const AxisWeights& weights, int64_t first, const ImageView& from,
                      Image* into);
#endif

}  // namespace forebay::ops
