// Files that are compressed as a whole, by gzip, zlib or zstd: unpacked at once, within bounds.
#pragma once

#include <vector>

#include "format/damage.h"

namespace forebay::format {

// Whether a file that begins so is one.
bool IsPacked(ByteView head);

// All of it, every gzip member and zstd frame, checksums verified. Errors: kDataLoss (damaged or
// cut, more than `most` bytes, or more than a thousand of one where it is above 64 MiB),
// kInvalidArgument (not packed).
Result<std::vector<std::byte>> Unpack(ByteView packed, uint64_t most, const Place& place = {});

}  // namespace forebay::format
