// Colours as Pillow converts and changes them.
#pragma once

#include <cstdint>

#include "forebay/ops.h"
#include "forebay/random.h"
#include "ops/image.h"

namespace forebay::ops {

// ITU-R 601-2 luma of 16 fractional bits, as convert("L").
void RgbToGrey(const uint8_t* from, int64_t pixels, uint8_t* to);

// torchvision's ColorJitter on a PIL image: draws order and factors, then changes `image` in
// place. Grey images have neither saturation nor hue.
void JitterColors(const ColorJitterOp& op, KeyedRandom* random, Image* image);

}  // namespace forebay::ops
