#include "format/unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

namespace forebay::format {
namespace {

using ::testing::HasSubstr;

std::string Gzip(const std::string& text, int bits = MAX_WBITS + 16) {
  std::string packed(text.size() + 1000, '\0');
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const auto context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

std::string Text() {
  std::string text;
  for (int i = 0; text.size() < 400'000; ++i) text += std::to_string(i * 7919 % 104729) + ",";
  return text;
}

std::string Unpacked(const std::string& packed) {
  const auto bytes = Unpack(AsBytes(packed), uint64_t{1} << 30);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? std::string(AsText(*bytes)) : "";
}

TEST(Unpack, takes_every_member_and_frame) {
  const std::string text = Text();
  const std::string skippable("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  EXPECT_TRUE(Unpacked(Gzip(text)) == text);
  EXPECT_TRUE(Unpacked(Gzip(text) + Gzip("") + Gzip("more")) == text + "more");
  EXPECT_TRUE(Unpacked(Gzip(text) + std::string(512, '\0')) == text);
  EXPECT_TRUE(Unpacked(Gzip(text, MAX_WBITS)) == text);
  EXPECT_TRUE(Unpacked(Zstd(text)) == text);
  EXPECT_TRUE(Unpacked(skippable + Zstd(text) + skippable + Zstd("more")) == text + "more");
}

TEST(Unpack, finds_damage_and_cuts) {
  for (const std::string& good : {Gzip(Text()), Zstd(Text())}) {
    for (size_t at = 10; at < good.size(); at += good.size() / 97) {
      EXPECT_FALSE(Unpack(AsBytes(good).first(at), 1 << 30).ok()) << at;
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 16);
      EXPECT_FALSE(Unpack(AsBytes(bad), 1 << 30).ok()) << at;
    }
    EXPECT_FALSE(Unpack(AsBytes(good + "rubbish"), 1 << 30).ok());
  }
  EXPECT_EQ(Unpack(AsBytes("plain text"), 1 << 30).code(), Code::kInvalidArgument);
}

TEST(Unpack, ends_at_its_limits) {
  const std::string zeros(80 << 20, '\0');
  for (const std::string& bomb : {Gzip(zeros), Zstd(zeros)}) {
    EXPECT_THAT(Unpack(AsBytes(bomb), 1 << 20).status().ToString(), HasSubstr("1048576"));
  }
  // More than a thousand of one, above what anything may take.
  EXPECT_THAT(Unpack(AsBytes(Zstd(zeros)), 1 << 30).status().ToString(), HasSubstr("67108864"));
}

}  // namespace
}  // namespace forebay::format
