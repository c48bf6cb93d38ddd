// How an object is cut for a multipart upload: S3's limits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::store {

inline constexpr uint64_t kMostParts = 10'000;
inline constexpr uint64_t kMostPartBytes = uint64_t{5} << 30;
inline constexpr uint64_t kMostObjectBytes = kMostParts * kMostPartBytes;  // 48.8 TiB

// The bytes of each part but the last, which may be shorter: `wanted` unless that makes too many
// parts; then whole MiB. kInvalidArgument when the object is larger than any can be.
inline Result<uint64_t> PartBytesFor(uint64_t size, uint64_t wanted) {
  constexpr uint64_t kMiB = 1 << 20;
  if (size > kMostObjectBytes) {
    return Status(Code::kInvalidArgument, "an object of " + FormatSize(size) +
                                              " is larger than the " +
                                              FormatSize(kMostObjectBytes) + " that S3 holds");
  }
  const uint64_t least = (size + kMostParts - 1) / kMostParts;
  wanted = std::min(std::max<uint64_t>(wanted, 1), kMostPartBytes);
  if (wanted >= least) return wanted;
  return std::min((least + kMiB - 1) / kMiB * kMiB, kMostPartBytes);
}

}  // namespace forebay::store
