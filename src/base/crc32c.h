// CRC-32C (Castagnoli), the checksum of TFRecord, iSCSI and of the fields in a records catalog:
// reflected polynomial 0x82f63b78, initial value and final xor all ones; of "123456789" it is
// 0xe3069283.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace forebay {

// The checksum of the bytes before, of which `crc` is the checksum (0: there are none), and these.
uint32_t ExtendCrc32c(uint32_t crc, ByteView bytes);

inline uint32_t Crc32c(ByteView bytes) { return ExtendCrc32c(0, bytes); }

// The same by tables alone, as it is computed where the processor has no instruction for it.
uint32_t ExtendCrc32cByTables(uint32_t crc, ByteView bytes);

}  // namespace forebay
