// Which pixels an op takes: torchvision's rules, in arithmetic that is the same on every machine.
#pragma once

#include <cstdint>

#include "forebay/ops.h"
#include "forebay/random.h"
#include "ops/image.h"

namespace forebay::ops {

// What `op` makes of an image of this size: never empty.
Size ResizedSize(const ResizeOp& op, const Size& image);

// The crop in the image's coordinates: beyond them where the image is smaller, on which side an odd
// pixel goes being torchvision's choice.
Rect CenterCropRect(const CenterCropOp& op, const Size& image);

Rect DrawCrop(const RandomResizedCropOp& op, const Size& image, KeyedRandom* random);

// Of plain IEEE operations, and so the same everywhere, which a C library's are not: within 2 units
// in the last place for what a ratio may be (1e-3 to 1e3).
double PortableLog(double x);
double PortableExp(double x);

}  // namespace forebay::ops
