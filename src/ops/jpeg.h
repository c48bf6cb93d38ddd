// JPEG by libjpeg-turbo, so that pixels equal PIL's: accurate DCT, fancy upsampling.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

// One image after the other, by one thread. After an error it is ready for the next.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  struct Info {
    Size size;
    int channels = 0;  // 1: grey, 3, or 4: CMYK or YCCK
  };
  // Reads the header; `data` has to last until Decode returns. More than `pixels_max`, or a
  // progressive image that would take more memory than its bytes can account for, is refused
  // before anything of its size is allocated. Errors: kDataLoss.
  Result<Info> Open(ByteView data, uint64_t pixels_max);

  // How four inks become three colours.
  enum class Cmyk : uint8_t { kInverted, kByMarker };  // as PIL; as torchvision since 0.16

  // The opened image's pixels within `region`, the same as those of a whole decode: of 1 channel,
  // or of 3 (RGB). The view lasts until the next Open. Data that is cut short is an error whatever
  // the region.
  Result<ImageView> Decode(const Rect& region, Cmyk cmyk = Cmyk::kInverted);

  // Whether the last image had damage that the library could decode past, as PIL does silently.
  bool damaged() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay::ops
