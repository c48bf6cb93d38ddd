#include "base/crc32c.h"

#include <array>
#include <cstring>

#include "base/crc32_tables.h"
#include "base/prefetch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace forebay {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected: bit 31 is x^0

#if defined(__x86_64__)

// a * b modulo the polynomial.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

uint64_t LoadWord(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The instruction takes three cycles and starts anew every cycle: three streams side by side, each
// a block long, of which the first two are then moved on by what follows them.
constexpr size_t kLongBlock = 4096;
constexpr size_t kShortBlock = 256;
// What comes behind the three is asked for in the meantime: to the hardware, three streams that end
// with a page are no stream.
static_assert(kLongBlock % kCacheLine == 0 && kShortBlock % kCacheLine == 0);

// Moves a checksum on by a fixed number of zero bytes, by one table for each of its bytes.
class Shift {
 public:
  explicit Shift(size_t bytes) {
    uint32_t power = uint32_t{1} << 31;                                             // x^0
    for (size_t i = 0; i < bytes; ++i) power = Multiply(power, uint32_t{1} << 23);  // x^8
    for (uint32_t k = 0; k < 4; ++k) {
      for (uint32_t b = 0; b < 256; ++b) tables_[k][b] = Multiply(power, b << (8 * k));
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return tables_[0][crc & 255] ^ tables_[1][(crc >> 8) & 255] ^ tables_[2][(crc >> 16) & 255] ^
           tables_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> tables_{};
};

[[gnu::target("sse4.2")]] const std::byte* AddThree(const std::byte* at, const std::byte* end,
                                                    size_t block, const Shift& shift,
                                                    uint64_t* state) {
  while (static_cast<size_t>(end - at) >= 3 * block) {
    uint64_t a = *state;
    uint64_t b = 0;
    uint64_t c = 0;
    for (const std::byte* const stop = at + block; at != stop;) {
      for (size_t k = 3; k < 6; ++k) __builtin_prefetch(at + k * block);
      for (const std::byte* const line = at + kCacheLine; at != line; at += 8) {
        a = _mm_crc32_u64(a, LoadWord(at));
        b = _mm_crc32_u64(b, LoadWord(at + block));
        c = _mm_crc32_u64(c, LoadWord(at + 2 * block));
      }
    }
    at += 2 * block;
    const uint32_t first = shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    *state = shift(first) ^ static_cast<uint32_t>(c);
  }
  return at;
}

[[gnu::target("sse4.2")]] uint32_t ExtendByInstruction(uint32_t crc, ByteView bytes) {
  static const Shift long_shift(kLongBlock);
  static const Shift short_shift(kShortBlock);
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  uint64_t state = ~crc;
  at = AddThree(at, end, kLongBlock, long_shift, &state);
  at = AddThree(at, end, kShortBlock, short_shift, &state);
  for (; end - at >= 8; at += 8) state = _mm_crc32_u64(state, LoadWord(at));
  for (; at != end; ++at) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), std::to_integer<uint8_t>(*at));
  }
  return ~static_cast<uint32_t>(state);
}

#endif

}  // namespace

uint32_t ExtendCrc32cByTables(uint32_t crc, ByteView bytes) {
  static const Crc32Tables tables(kPolynomial);
  return tables.Extend(crc, bytes);
}

uint32_t ExtendCrc32c(uint32_t crc, ByteView bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCrc32cByTables(crc, bytes);
}

}  // namespace forebay
