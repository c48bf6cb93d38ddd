// PNG by libspng, as PIL reads it: alpha and transparency kept or dropped, never blended; gamma and
// profiles ignored; of 16 bits the high byte, but of grey the value cut off at 255.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

// One image after the other, by one thread.
class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Reads the header; `data` has to last until Decode returns. Errors: kDataLoss.
  Result<Size> Open(ByteView data, uint64_t pixels_max);
  // The TIFF block of the file's EXIF data, or nothing.
  ByteView exif();
  struct Wanted {
    bool as_stored = false;       // of as many channels as the file has (1 to 4), else 1 or 3
    bool grey_high_byte = false;  // of 16 bits of grey; else cut off at 255
  };
  // All pixels. The view lasts until the next Open. Errors: kDataLoss, of damage anywhere in the
  // image data.
  Result<ImageView> Decode(const Wanted& wanted);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay::ops
