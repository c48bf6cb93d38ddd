// WebP by libwebp, as PIL reads it: alpha kept or dropped, never blended. No animations.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

// One image after the other, by one thread.
class WebpDecoder {
 public:
  // Reads the header; `data` has to last until Decode returns. Errors: kDataLoss.
  Result<Size> Open(ByteView data, uint64_t pixels_max);
  // The TIFF block of the file's EXIF data, or nothing.
  ByteView exif() const;
  // All pixels: of 3 channels, or `as_stored` of 4 where there is alpha. The view lasts until the
  // next Open.
  Result<ImageView> Decode(bool as_stored);

 private:
  ByteView data_;
  Size size_;
  bool has_alpha_ = false;
  Image pixels_;
};

}  // namespace forebay::ops
