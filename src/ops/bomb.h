// What an image may declare before memory of its size is taken.
#pragma once

#include <cstdint>

#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

// Errors: kDataLoss: no pixels, a side of more than a million, more than `pixels_max`, or over 64
// MiB, as they are stored, of which 1,100 and more would come from each byte of the file: neither
// deflate (1,032) nor JPEG's codes (1,024) reach that.
Status CheckBomb(const Size& size, int bits_per_pixel, uint64_t file_bytes, uint64_t pixels_max);

}  // namespace forebay::ops
