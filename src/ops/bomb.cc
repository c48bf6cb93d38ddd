#include "ops/bomb.h"

#include <fmt/core.h>

namespace forebay::ops {

Status CheckBomb(const Size& size, int bits_per_pixel, uint64_t file_bytes, uint64_t pixels_max) {
  constexpr int64_t kSideMost = 1'000'000;  // a resize takes some 50 bytes for each
  constexpr uint64_t kAlwaysFine = uint64_t{64} << 20;
  constexpr uint64_t kRatioMost = 1100;
  if (size.width < 1 || size.height < 1) return Status(Code::kDataLoss, "an image of no pixels");
  if (size.width > kSideMost || size.height > kSideMost) {
    return Status(Code::kDataLoss,
                  fmt::format("an image of {} x {} pixels", size.width, size.height));
  }
  const auto pixels = static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  if (pixels > pixels_max) {
    return Status(Code::kDataLoss,
                  fmt::format("an image of {} x {} pixels, and the limit is {} pixels (pixels_max)",
                              size.width, size.height, pixels_max));
  }
  const uint64_t bytes = pixels * static_cast<uint64_t>(bits_per_pixel) / 8;
  if (bytes > kAlwaysFine && bytes / kRatioMost > file_bytes) {
    return Status(Code::kDataLoss, fmt::format("{} bytes that say to be an image of {} x {} pixels",
                                               file_bytes, size.width, size.height));
  }
  return {};
}

}  // namespace forebay::ops
