// Copies of payload that is not read again soon. Large ones go past the caches: a line of the
// target is then not read before it is written, and what the caches hold stays there.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace forebay {

// `to` has room for all of `from`, and they do not overlap.
void StreamCopy(ByteView from, std::byte* to);
// The same, and the checksum continued as by ExtendCrc32c: the bytes are read from memory once.
uint32_t StreamCopyCrc32c(uint32_t crc, ByteView from, std::byte* to);

}  // namespace forebay
