#include "format/sniff.h"

#include <gtest/gtest.h>

#include <utility>

#include "format/tfrecord.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using testing::Number;

Kind SniffText(const std::string& bytes, std::string_view name = "") {
  return Sniff(AsBytes(bytes).first(std::min(bytes.size(), kSniffBytes)), bytes.size(), name);
}

std::string Zip(const std::string& member) {
  return "PK\x03\x04" + std::string(22, '\0') +
         Number<uint16_t>(static_cast<uint16_t>(member.size())) + std::string(2, '\0') + member;
}

std::string Table(const std::string& config, uint32_t count, uint32_t each) {
  std::string bytes = Number(count);
  const auto start = static_cast<uint32_t>(4 * (count + 2) + config.size());
  for (uint32_t i = 0; i <= count; ++i) bytes += Number<uint32_t>(start + i * each);
  return bytes + config + std::string(size_t{count} * each, 'd');
}

TEST(Sniff, knows_every_format_by_its_content) {
  const std::string length = Number<uint64_t>(3);
  const std::string frame = length + Number(MaskCrc32c(Crc32c(AsBytes(length)))) + "abc....";
  const std::string beton = Number<uint16_t>(2) + Number<uint16_t>(1) + Number<uint32_t>(1 << 23) +
                            Number<uint64_t>(1) + Number<uint64_t>(24 + 1041) +
                            std::string(1041 + 24, '\0');
  const std::pair<Kind, std::string> cases[] = {
      {Kind::kTfRecord, frame},
      {Kind::kRecordIo, Number(0xced7230a) + Number<uint32_t>(0)},
      {Kind::kMds, Table("{\"version\": 2}", 3, 5)},
      {Kind::kMds, Table("{\"version\": 2}", 3000, 5)},
      {Kind::kLitData, Table("", 3, 5)},
      {Kind::kLitData, Table("", 3000, 5)},
      {Kind::kJsonl, "{\"a\": 1}\n{}"},
      {Kind::kJsonl, "\xef\xbb\xbf {}\n"},
      {Kind::kParquet, "PAR1...."},
      {Kind::kNpy, "\x93NUMPY\x01"},
      {Kind::kNpz, Zip("x.npy")},
      {Kind::kZip, Zip("x.txt")},
      {Kind::kArrow, std::string("ARROW1\0\0", 8)},
      {Kind::kBeton, beton},
      {Kind::kLlmcTokens, Number<uint32_t>(20240520) + Number<uint32_t>(1)},
      {Kind::kMegatronIndex, std::string("MMIDIDX\0\0", 9)},
      {Kind::kGzip, "\x1f\x8b\x08..."},
      {Kind::kZstd, "\x28\xb5\x2f\xfd..."},
      {Kind::kZstd, "\x5e\x2a\x4d\x18..."},
      {Kind::kZlib, "\x78\x9c abcdef"},
      {Kind::kBzip2, "BZh91AY&SY"},
      {Kind::kXz, std::string("\xfd"
                              "7zXZ\0",
                              6)},
      {Kind::kErrorPage, "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>"},
      {Kind::kErrorPage, "\n<!DOCTYPE html><html>"},
      {Kind::kGitLfs, "version https://git-lfs.github.com/spec/v1\n"},
      {Kind::kUnknown, ""},
      {Kind::kUnknown, "some text"},
      {Kind::kUnknown, std::string(5000, '\0')},
  };
  for (const auto& [kind, bytes] : cases) {
    EXPECT_EQ(KindName(SniffText(bytes)), KindName(kind)) << bytes.substr(0, 20);
    // Shards may be shorter than what tells their kind.
    for (size_t size = 0; size < std::min<size_t>(bytes.size(), 64); ++size) {
      EXPECT_FALSE(KindName(SniffText(bytes.substr(0, size))).empty());
    }
  }
}

TEST(Sniff, takes_the_name_only_where_the_content_does_not_tell) {
  EXPECT_EQ(SniffText("a,b\n1,2\n", "x/table.csv"), Kind::kCsv);
  EXPECT_EQ(SniffText("[1]\n[2]\n", "x.v1/list.jsonl"), Kind::kJsonl);
  EXPECT_EQ(SniffText(std::string(1024, '\0'), "empty.tar"), Kind::kTar);
  EXPECT_EQ(SniffText("", "empty.tar"), Kind::kTar);
  EXPECT_EQ(SniffText("", "empty.tfrecord"), Kind::kTfRecord);
  EXPECT_EQ(SniffText("{\"a\": 1}\n", "lies.csv"), Kind::kJsonl);
  EXPECT_EQ(SniffText("\x1f\x8b\x08...", "lies.tar"), Kind::kGzip);
}

TEST(Sniff, is_not_misled_by_two_bytes) {
  // A record whose length begins as gzip does.
  const std::string length = Number<uint64_t>(0x088b1f);
  EXPECT_EQ(SniffText(length + Number(MaskCrc32c(Crc32c(AsBytes(length)))) + "data"),
            Kind::kTfRecord);
}

TEST(Sniff, has_a_name_for_every_kind) {
  for (int i = 0; i <= static_cast<int>(Kind::kGitLfs); ++i) {
    EXPECT_EQ(KindName(static_cast<Kind>(i)) == "unknown", i == 0) << i;
  }
  EXPECT_EQ(KindName(Kind::kGitLfs), "git_lfs");
  EXPECT_EQ(KindName(Kind::kMds), "mds");
  EXPECT_EQ(KindName(Kind::kLitData), "litdata");
}

}  // namespace
}  // namespace forebay::format
