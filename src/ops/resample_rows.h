// The two passes of a resize: the inner loops, for the processor at hand. All give the same bytes.
#pragma once

#include <cstdint>

#include "ops/image.h"
#include "ops/resample.h"

namespace forebay::ops {

// Fractional bits of a weight: what is left of 32 when 8 are the pixel's and 2 are spare.
inline constexpr int kWeightBits = 32 - 8 - 2;

// `first` is where `from` begins in what the weights' spans count by.
void ResampleColumns(const AxisWeights& weights, int64_t first, const ImageView& from, Image* into);
void ResampleRows(const AxisWeights& weights, int64_t first, const ImageView& from, Image* into);

}  // namespace forebay::ops
