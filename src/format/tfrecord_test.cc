#include "format/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using testing::CutNear;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::Number;
using testing::RunScan;
using testing::Scanned;

std::string Frame(const std::string& data) {
  const std::string length = Number<uint64_t>(data.size());
  return length + Number(MaskCrc32c(Crc32c(AsBytes(length)))) + data +
         Number(MaskCrc32c(Crc32c(AsBytes(data))));
}

std::string ForgedLength(uint64_t size) {
  const std::string length = Number<uint64_t>(size);
  return length + Number(MaskCrc32c(Crc32c(AsBytes(length))));
}

Scanned ScanIt(const std::string& bytes, const TfRecordOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanTfRecord(shard, options, on, report);
  });
}

std::vector<std::string> Data(const std::string& bytes, const Scanned& scanned) {
  std::vector<std::string> data;
  for (const FoundRecord& record : scanned.records) {
    const FoundField& field = record.fields.at(0);
    const std::string frame = bytes.substr(field.range.offset, field.range.size());
    const auto opened = OpenTfRecord(AsBytes(frame));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_EQ(opened->size(), field.bytes);
    data.emplace_back(AsText(*opened));
  }
  return data;
}

TEST(TfRecord, has_the_frames_that_tensorflow_writes) {
  EXPECT_EQ(Frame(""), std::string("\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16));
  EXPECT_EQ(MaskCrc32c(Crc32c(AsBytes("123456789"))), 0xc78ab0e5U);
}

TEST(TfRecord, gives_the_records_in_order) {
  const std::string bytes = Frame("one") + Frame("") + Frame(std::string(70000, 'x'));
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_THAT(Data(bytes, scanned), ::testing::ElementsAre("one", "", std::string(70000, 'x')));
  EXPECT_EQ(scanned.report.oddities, 0U);
  EXPECT_EQ(scanned.report.bytes_read, bytes.size());
}

TEST(TfRecord, of_nothing_has_no_records) {
  const Scanned scanned = ScanIt("");
  EXPECT_TRUE(scanned.status.ok());
  EXPECT_TRUE(scanned.HasOddity("empty"));
}

TEST(TfRecord, with_any_byte_changed_is_an_error_that_says_where) {
  const std::string bytes = Frame("one") + Frame("second");
  for (size_t at = 0; at < bytes.size(); ++at) {
    const Scanned scanned = ScanIt(Flipped(bytes, at));
    EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << at;
    EXPECT_THAT(scanned.status.ToString(), HasSubstr("shard, offset ")) << at;
    EXPECT_EQ(scanned.records.size(), at < Frame("one").size() ? 0U : 1U);
    const std::string frame = Flipped(bytes, at).substr(0, Frame("one").size());
    EXPECT_EQ(OpenTfRecord(AsBytes(frame)).ok(), at >= frame.size());
  }
}

TEST(TfRecord, leaves_out_damaged_data_up_to_a_count) {
  const std::string bytes = Flipped(Frame("one"), 12) + Frame("two") + Flipped(Frame("three"), 13);
  const Scanned two = ScanIt(bytes, {.max_damaged = 2});
  EXPECT_TRUE(two.status.ok()) << two.status.ToString();
  EXPECT_THAT(Data(bytes, two), ::testing::ElementsAre("two"));
  EXPECT_EQ(two.report.oddities, 2U);
  EXPECT_EQ(ScanIt(bytes, {.max_damaged = 1}).status.code(), Code::kDataLoss);
  EXPECT_EQ(ScanIt(Flipped(bytes, 3), {.max_damaged = 9}).status.code(), Code::kDataLoss);
}

TEST(TfRecord, that_is_cut_is_an_error_or_loses_its_last_record) {
  const std::string bytes = Frame("one") + Frame("second");
  const size_t first = Frame("one").size();
  for (const std::string& cut :
       CutNear(bytes, {1, 8, 12, 15, first, first + 8, first + 12, first + 18, bytes.size()})) {
    const bool whole = cut.empty() || cut.size() == first;
    const Scanned scanned = ScanIt(cut);
    EXPECT_EQ(scanned.status.ok(), whole) << cut.size();
    if (!whole) {
      EXPECT_THAT(scanned.status.ToString(), HasSubstr("cut: expected"));
    }
    const Scanned dropped = ScanIt(cut, {.drop_tail = true});
    EXPECT_TRUE(dropped.status.ok());
    EXPECT_EQ(dropped.records.size(), cut.size() < first ? 0U : 1U);
    EXPECT_EQ(dropped.report.oddities, whole && !cut.empty() ? 0U : 1U);
    EXPECT_FALSE(OpenTfRecord(AsBytes(cut)).ok() && cut.size() != first);
  }
}

TEST(TfRecord, with_a_forged_length_is_an_error) {
  for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 15, uint64_t{1} << 62, uint64_t{2} << 30}) {
    EXPECT_EQ(ScanIt(ForgedLength(size) + "data").status.code(), Code::kDataLoss);
    EXPECT_EQ(OpenTfRecord(AsBytes(ForgedLength(size) + "data")).code(), Code::kDataLoss);
  }
  EXPECT_THAT(ScanIt(Frame("four!"), {.max_record_bytes = 4}).status.ToString(),
              HasSubstr("limit of 4"));
}

TEST(TfRecord, that_is_compressed_or_no_data_is_refused_with_advice) {
  EXPECT_EQ(ScanIt("\x1f\x8b\x08 gzip").status.code(), Code::kUnimplemented);
  EXPECT_THAT(ScanIt("\x1f\x8b\x08 gzip").status.ToString(), HasSubstr("unpack it"));
  EXPECT_EQ(ScanIt("\x78\x9c zlib data").status.code(), Code::kUnimplemented);
  EXPECT_THAT(ScanIt("version https://git-lfs.github.com/spec/v1\n").status.ToString(),
              HasSubstr("Git LFS"));
  // 120 bytes: begins as zlib may, and is none.
  EXPECT_TRUE(ScanIt(Frame(std::string(0x0178, 'x'))).status.ok());
  EXPECT_TRUE(ScanIt(Frame(std::string(0x088b1f, 'x'))).status.ok());
}

TEST(TfRecord, larger_than_the_window_is_read_over) {
  const std::string large = Frame(std::string(size_t{9} << 20, 'x'));
  const std::string bytes = Frame("one") + large + Frame("two");
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_EQ(scanned.records.size(), 3U);
  EXPECT_LT(scanned.report.bytes_read, size_t{1} << 20);
  EXPECT_EQ(ScanIt(Flipped(bytes, bytes.size() - 5)).status.code(), Code::kDataLoss);
}

}  // namespace
}  // namespace forebay::format
