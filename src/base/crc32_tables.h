// A reflected 32-bit checksum, eight bytes a step, each through its own table.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace forebay {

class Crc32Tables {
 public:
  // Bit 31 is x^0.
  explicit Crc32Tables(uint32_t polynomial) {
    for (uint32_t b = 0; b < 256; ++b) {
      uint32_t value = b;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
      tables_[0][b] = value;
    }
    for (size_t k = 1; k < tables_.size(); ++k) {
      for (size_t b = 0; b < 256; ++b) {
        const uint32_t before = tables_[k - 1][b];
        tables_[k][b] = (before >> 8) ^ tables_[0][before & 255];
      }
    }
  }

  uint32_t Extend(uint32_t crc, ByteView bytes) const {
    uint32_t state = ~crc;
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    for (; end - at >= 8; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      word ^= state;
      state = 0;
      for (size_t i = 0; i < 8; ++i) state ^= tables_[7 - i][(word >> (8 * i)) & 255];
    }
    for (; at != end; ++at) {
      state = (state >> 8) ^ tables_[0][(state ^ std::to_integer<uint32_t>(*at)) & 255];
    }
    return ~state;
  }

 private:
  // [k][b]: what byte b adds when k more bytes follow.
  std::array<std::array<uint32_t, 256>, 8> tables_{};
};

}  // namespace forebay
