#include "base/crc32.h"

#include "base/crc32_tables.h"

namespace forebay {

uint32_t ExtendCrc32(uint32_t crc, ByteView bytes) {
  static const Crc32Tables tables(0xedb88320);
  return tables.Extend(crc, bytes);
}

}  // namespace forebay
