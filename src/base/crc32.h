// CRC-32, the checksum of zip, gzip and Parquet's pages: reflected polynomial 0xedb88320, initial
// value and final xor all ones; of "123456789" it is 0xcbf43926.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace forebay {

// The checksum of the bytes before, of which `crc` is the checksum (0: there are none), and these.
uint32_t ExtendCrc32(uint32_t crc, ByteView bytes);

inline uint32_t Crc32(ByteView bytes) { return ExtendCrc32(0, bytes); }

}  // namespace forebay
