#include "base/crc64.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace forebay {
namespace {

uint64_t Of(std::string_view text) {
  Crc64 crc;
  crc.Add(AsBytes(text));
  return crc.value();
}

// Bit by bit, as it is defined.
uint64_t Slow(std::string_view text) {
  uint64_t state = ~uint64_t{0};
  for (const char c : text) {
    state ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ ((state & 1) != 0 ? 0x9a6c9329ac4bc9b5 : 0);
    }
  }
  return ~state;
}

TEST(Crc64, is_that_of_the_nvme_specification) {
  EXPECT_EQ(Of(""), 0U);
  EXPECT_EQ(Of("123456789"), 0xae8b14860a799888U);
  EXPECT_EQ(Of(std::string(4096, '\0')), 0x6482d367eb22b64eU);
  EXPECT_EQ(Of(std::string(4096, '\xff')), 0xc0ddba7302eca3acU);
}

TEST(Crc64, is_the_same_however_long_the_bytes_are_and_however_they_are_cut) {
  Random random(7);
  std::string text(3000, '\0');
  for (char& c : text) c = static_cast<char>(random.Next());
  for (size_t size = 0; size < text.size(); size += 1 + size / 40) {
    const std::string_view part = std::string_view(text).substr(text.size() - size);
    ASSERT_EQ(Of(part), Slow(part)) << size;
    Crc64 crc;
    const size_t cut = size == 0 ? 0 : random.NextBelow(size);
    crc.Add(AsBytes(part.substr(0, cut)));
    crc.Add(AsBytes(part.substr(cut)));
    ASSERT_EQ(crc.value(), Slow(part)) << size << " cut at " << cut;
  }
}

}  // namespace
}  // namespace forebay
