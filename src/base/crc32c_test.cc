#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32.h"
#include "base/random.h"

namespace forebay {
namespace {

// Bit by bit, as it is defined.
uint32_t Slow(std::string_view text) {
  uint32_t state = ~uint32_t{0};
  for (const char c : text) {
    state ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78 : 0);
    }
  }
  return ~state;
}

TEST(Crc32c, is_that_of_rfc_3720) {
  EXPECT_EQ(Crc32c(AsBytes("")), 0U);
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xe3069283U);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\xff'))), 0x62a8ab43U);
}

TEST(Crc32c, is_the_same_however_long_the_bytes_are_and_however_they_are_cut) {
  Random random(7);
  std::string text(30000, '\0');
  for (char& c : text) c = static_cast<char>(random.Next());
  for (size_t size = 0; size < text.size(); size += 1 + size / 40) {
    const std::string_view part = std::string_view(text).substr(text.size() - size);
    const uint32_t expected = Slow(part);
    ASSERT_EQ(Crc32c(AsBytes(part)), expected) << size;
    ASSERT_EQ(ExtendCrc32cByTables(0, AsBytes(part)), expected) << size;
    const size_t cut = size == 0 ? 0 : random.NextBelow(size);
    const uint32_t before = Crc32c(AsBytes(part.substr(0, cut)));
    ASSERT_EQ(ExtendCrc32c(before, AsBytes(part.substr(cut))), expected) << size << " at " << cut;
    ASSERT_EQ(ExtendCrc32cByTables(before, AsBytes(part.substr(cut))), expected) << size;
  }
}

TEST(Crc32, is_that_of_zip) {
  EXPECT_EQ(Crc32(AsBytes("")), 0U);
  EXPECT_EQ(Crc32(AsBytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(Crc32(AsBytes("The quick brown fox jumps over the lazy dog")), 0x414fa339U);
  EXPECT_EQ(ExtendCrc32(Crc32(AsBytes("1234")), AsBytes("56789")), 0xcbf43926U);
}

}  // namespace
}  // namespace forebay
