// An image file's bytes to pixels of the wanted mode. Content decides what it is, never a name.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"
#include "ops/image.h"
#include "ops/jpeg.h"

namespace forebay::ops {

// Of one thread.
class ImageDecoder {
 public:
  // Reads the header: how large the image is, turned as `op` says. `file` and `op` have to last
  // until Decode returns. Errors: kDataLoss.
  Result<Size> Open(ByteView file, const DecodeImageOp& op);
  // The pixels within `region`; the view lasts until the next Open.
  Result<ImageView> Decode(const Rect& region);
  // Whether the last image had damage that was decoded past, as PIL does.
  bool damaged() const;

 private:
  ImageView InMode(const ImageView& pixels);

  const DecodeImageOp* op_ = nullptr;
  JpegDecoder jpeg_;
  Image converted_;
};

}  // namespace forebay::ops
