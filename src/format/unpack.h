// Files that are compressed as a whole, by gzip, zlib or zstd: unpacked at once, within bounds.
#pragma once

#include <string>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

// Whether a file that begins so is one.
bool IsPacked(ByteView head);

// All of it, every gzip member and zstd frame, checksums verified. Errors: kDataLoss (damaged or
// cut, more than `most` bytes, or more than a thousand of one where it is above 64 MiB),
// kInvalidArgument (not packed).
Result<std::vector<std::byte>> Unpack(ByteView packed, uint64_t most, const Place& place = {});

inline constexpr uint64_t kUnpackedMost = uint64_t{1} << 30;  // of a shard, stored and unpacked

// All bytes of a shard as it is stored. Errors: kDataLoss (more than kUnpackedMost).
Result<std::vector<std::byte>> ReadStored(const Shard& shard);
// A shard of bytes that outlive it.
Shard InMemory(std::string name, ByteView bytes);

}  // namespace forebay::format
