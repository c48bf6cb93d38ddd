// What an image may declare before memory of its size is taken.
#pragma once

#include <cstdint>

#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

// Errors: kDataLoss: no pixels, more than `pixels_max`, or over 64 MiB of them and more than a
// thousand bytes of pixels for each byte of the file.
Status CheckBomb(const Size& size, int channels, uint64_t file_bytes, uint64_t pixels_max);

}  // namespace forebay::ops
