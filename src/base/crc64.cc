#include "base/crc64.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace forebay {
namespace {

constexpr uint64_t kPolynomial = 0x9a6c9329ac4bc9b5;  // reflected: bit 63 is x^0
constexpr size_t kSlices = 16;

// x^n modulo the polynomial, reflected.
constexpr uint64_t Power(int n) {
  uint64_t value = uint64_t{1} << 63;
  for (int i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return value;
}

using Tables = std::array<std::array<uint64_t, 256>, kSlices>;

// table[k][b]: what byte b adds when k more bytes follow.
Tables MakeTables() {
  Tables tables{};
  for (uint64_t b = 0; b < 256; ++b) {
    uint64_t value = b;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    tables[0][b] = value;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint64_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 255];
    }
  }
  return tables;
}

uint64_t LoadWord(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Sixteen bytes a step, each through its own table.
uint64_t AddByTables(uint64_t state, ByteView bytes) {
  static const Tables tables = MakeTables();
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  for (; end - at >= 16; at += 16) {
    const uint64_t low = LoadWord(at) ^ state;
    const uint64_t high = LoadWord(at + 8);
    state = 0;
    for (size_t i = 0; i < 8; ++i) {
      state ^= tables[15 - i][(low >> (8 * i)) & 255] ^ tables[7 - i][(high >> (8 * i)) & 255];
    }
  }
  for (; at != end; ++at) {
    state = (state >> 8) ^ tables[0][(state ^ std::to_integer<uint64_t>(*at)) & 255];
  }
  return state;
}

#if defined(__x86_64__)

constexpr size_t kBlock = 64;

[[gnu::target("pclmul,sse4.1")]] inline __m128i Load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// a moved 128 x `lanes` bits on, and b added: [low word, high word] by [x^(d + 63), x^(d - 1)].
[[gnu::target("pclmul,sse4.1")]] inline __m128i Fold(__m128i a, __m128i by, __m128i b) {
  return _mm_xor_si128(
      b, _mm_xor_si128(_mm_clmulepi64_si128(a, by, 0x00), _mm_clmulepi64_si128(a, by, 0x11)));
}

// Carry-less multiplication folds four lanes of 16 bytes into the next four. Of the 16 bytes that
// remain the tables make the checksum. At least one block.
[[gnu::target("pclmul,sse4.1")]] uint64_t AddByFolding(uint64_t state, ByteView bytes) {
  // The product of two reflected words is one bit short: hence the - 1.
  const __m128i by_four = _mm_set_epi64x(static_cast<int64_t>(Power(4 * 128 - 1)),
                                         static_cast<int64_t>(Power(4 * 128 + 63)));
  const __m128i by_one =
      _mm_set_epi64x(static_cast<int64_t>(Power(128 - 1)), static_cast<int64_t>(Power(128 + 63)));
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  __m128i lanes[4];
  for (size_t i = 0; i < 4; ++i) lanes[i] = Load(at + 16 * i);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_set_epi64x(0, static_cast<int64_t>(state)));
  at += kBlock;
  left -= kBlock;
  for (; left >= kBlock; at += kBlock, left -= kBlock) {
    for (size_t i = 0; i < 4; ++i) lanes[i] = Fold(lanes[i], by_four, Load(at + 16 * i));
  }
  __m128i sum = lanes[0];
  for (size_t i = 1; i < 4; ++i) sum = Fold(sum, by_one, lanes[i]);
  for (; left >= 16; at += 16, left -= 16) sum = Fold(sum, by_one, Load(at));
  std::array<std::byte, 16> last;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last.data()), sum);
  return AddByTables(AddByTables(0, last), {at, left});
}

bool CanFold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

}  // namespace

void Crc64::Add(ByteView bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= 4 * kBlock && CanFold()) {
    state_ = AddByFolding(state_, bytes);
    return;
  }
#endif
  state_ = AddByTables(state_, bytes);
}

}  // namespace forebay
