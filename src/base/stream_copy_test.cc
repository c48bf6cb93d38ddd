#include "base/stream_copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/crc32c.h"
#include "base/random.h"

namespace forebay {
namespace {

std::vector<std::byte> Bytes(size_t size) {
  Random random(size + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.NextBelow(256));
  return bytes;
}

constexpr size_t kSizes[] = {0,     1,     63,    64,    65,    4095,   16383,  16384,
                             16385, 24576, 24577, 65535, 65536, 100000, 131072, 1000003};

// Every byte lands in its place and none beside it, from and to any alignment.
TEST(StreamCopy, CopiesExactlyItsBytes) {
  for (const size_t size : kSizes) {
    for (const size_t from : {0, 1, 7, 33}) {
      for (const size_t to : {0, 1, 15, 16, 63}) {
        const std::vector<std::byte> source = Bytes(size + from);
        std::vector<std::byte> plain(size + to + 64, std::byte{0xee});
        std::vector<std::byte> summed = plain;
        std::vector<std::byte> expected = plain;
        const ByteView bytes = ByteView(source).subspan(from);
        std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(to));
        StreamCopy(bytes, plain.data() + to);
        const uint32_t crc = StreamCopyCrc32c(17, bytes, summed.data() + to);
        ASSERT_EQ(plain, expected) << size << " " << from << " " << to;
        ASSERT_EQ(summed, expected) << size << " " << from << " " << to;
        ASSERT_EQ(crc, ExtendCrc32c(17, bytes)) << size << " " << from << " " << to;
      }
    }
  }
}

}  // namespace
}  // namespace forebay
