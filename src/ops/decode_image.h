// An image file's bytes to pixels of the wanted mode. Content decides what it is, never a name.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"
#include "ops/image.h"
#include "ops/jpeg.h"
#include "ops/orientation.h"
#include "ops/png.h"
#include "ops/webp.h"

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
  bool damaged() const { return kind_ == Kind::kJpeg && jpeg_.damaged(); }

 private:
  enum class Kind : uint8_t { kNone, kJpeg, kPng, kWebp };

  Result<Size> OpenStored(ByteView file);
  Result<ImageView> DecodeStored(const Rect& region);
  ByteView Exif(ByteView file);
  ImageView InMode(const ImageView& pixels);

  const DecodeImageOp* op_ = nullptr;
  Kind kind_ = Kind::kNone;
  Size stored_;
  Orientation orientation_;
  JpegDecoder jpeg_;
  PngDecoder png_;
  WebpDecoder webp_;
  Image converted_;
  Image turned_;
};

}  // namespace forebay::ops
