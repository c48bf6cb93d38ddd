// CRC-64/NVME, the checksum that S3 keeps of every object: reflected polynomial 0x9a6c9329ac4bc9b5,
// initial value and final xor all ones; of "123456789" it is 0xae8b14860a799888.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace forebay {

class Crc64 {
 public:
  void Add(ByteView bytes);
  uint64_t value() const { return ~state_; }

 private:
  uint64_t state_ = ~uint64_t{0};
};

}  // namespace forebay
