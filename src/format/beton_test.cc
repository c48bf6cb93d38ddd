#include "format/beton.h"

#include "format/beton_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::HasSubstr;
using testing::Number;
using testing::Replaced;
using testing::RunScan;
using testing::Scanned;

constexpr uint64_t kPage = uint64_t{1} << 21;

std::string Field(uint8_t type, std::string name) {
  name.resize(16);
  return Number(type) + name + std::string(1024, '\0');
}

std::string ImageRow(uint8_t mode, uint16_t width, uint16_t height, uint64_t offset) {
  return Number(mode) + Number(width) + Number(height) + Number(offset);
}

// Two samples of an image and a number: rows of 24 bytes (13, three of padding, 8).
std::string Beton() {
  const std::string head = Number<uint16_t>(2) + Number<uint16_t>(2) +
                           Number(static_cast<uint32_t>(kPage)) + Number<uint64_t>(2) +
                           Number<uint64_t>(kPage + 16) + Field(2, "image") + Field(1, "label");
  std::string bytes = head + ImageRow(0, 8, 8, kPage + 6) + std::string(3, '\0') +
                      Number<int64_t>(7) + ImageRow(1, 2, 1, kPage) + std::string(3, '\0') +
                      Number<int64_t>(-1);
  bytes.resize(kPage);
  bytes += "rawpixjpegjpeg..";
  const auto entry = [](uint64_t sample, uint64_t offset, uint64_t size) {
    return Number(sample) + Number(offset) + Number(size);
  };
  return bytes + entry(1, kPage, 6) + entry(0, kPage + 6, 8);
}

constexpr size_t kRows = 24 + 2 * 1041;

Scanned ScanIt(const std::string& bytes) {
  return RunScan(bytes, [](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanBeton(shard, on, report);
  });
}

TEST(Beton, gives_its_samples) {
  const std::string bytes = Beton();
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 2U);
  const auto text = [&](size_t record, size_t field) {
    const ByteRange range = scanned.records[record].fields[field].range;
    return bytes.substr(range.offset, range.size());
  };
  EXPECT_EQ(scanned.records[0].fields[1].name, "image");
  EXPECT_EQ(text(0, 1), "jpegjpeg");
  EXPECT_EQ(text(1, 1), "rawpix");
  EXPECT_EQ(text(0, 2), Number<int64_t>(7));
  EXPECT_EQ(text(1, 2), Number<int64_t>(-1));
  EXPECT_EQ(scanned.records[1].fields[0].name, "image.row");
  const auto image = OpenBetonImage(AsBytes(text(1, 0)));
  ASSERT_TRUE(image.ok());
  EXPECT_TRUE(image->raw);
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->height, 1);
}

// A file of which the samples are a table.
TEST(Beton, samples_are_a_group_of_rows) {
  const std::string bytes = Beton();
  const Scanned scanned = RunScan(bytes, &ScanBetonTable, /*of_tables=*/true);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 1U);
  EXPECT_EQ(scanned.report.records, 2U);
  const FoundRecord& record = scanned.records[0];
  std::vector<ByteRange> fields;
  for (const FoundField& field : record.fields) fields.push_back(field.range);
  const auto group = UnpackBetonGroup(record.key, fields);
  ASSERT_TRUE(group.ok()) << group.status().ToString();
  ASSERT_EQ(group->rows, 2U);
  EXPECT_EQ(PackBetonGroup(*group), record.key);
  const auto decode = [&](size_t column, uint64_t first, uint64_t rows) {
    const BetonChunk& chunk = group->chunks[column];
    std::string read;
    for (const ByteRange& range : ReadsOf(chunk, first, first + rows)) {
      read += bytes.substr(range.offset, range.size());
    }
    TableValues values;
    EXPECT_TRUE(DecodeBeton(chunk, first, rows, AsBytes(read), &values).ok());
    EXPECT_EQ(values.rows, rows);
    return std::string(AsText(values.values));
  };
  EXPECT_EQ(decode(1, 0, 2), "jpegjpegrawpix");
  EXPECT_EQ(decode(1, 1, 1), "rawpix");
  EXPECT_EQ(decode(2, 0, 2), Number<int64_t>(7) + Number<int64_t>(-1));
  EXPECT_EQ(decode(2, 1, 1), Number<int64_t>(-1));
  EXPECT_EQ(decode(0, 1, 1), ImageRow(1, 2, 1, kPage));
  for (size_t size = 0; size < record.key.size(); ++size) {
    EXPECT_FALSE(UnpackBetonGroup(record.key.substr(0, size), fields).ok()) << size;
  }
  for (size_t i = 0; i < fields.size(); ++i) {  // places that lie outside of what is said
    std::vector<ByteRange> less = fields;
    --less[i].end;
    EXPECT_EQ(UnpackBetonGroup(record.key, less).code(), Code::kDataLoss) << i;
  }
}

// Nothing may lie where something begins, whichever the list names first.
TEST(Beton, of_data_at_one_place_those_that_have_bytes_count) {
  for (const bool first : {true, false}) {
    std::string bytes = Beton();
    const std::string empty = Number<uint64_t>(0) + Number<uint64_t>(kPage) + Number<uint64_t>(0);
    bytes.insert(first ? kPage + 16 : bytes.size(), empty);
    const Scanned scanned = ScanIt(bytes);
    ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    EXPECT_EQ(scanned.records[1].fields[1].range.size(), 6U);
  }
}

TEST(Beton, that_is_cut_is_an_error) {
  const std::string bytes = Beton();
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{23}, size_t{24}, size_t{1064}, kRows - 1, kRows, kRows + 47,
        kRows + 48, size_t{kPage}, size_t{kPage} + 6, bytes.size() - 24, bytes.size() - 1}) {
    EXPECT_EQ(ScanIt(bytes.substr(0, size)).status.code(), Code::kDataLoss) << size;
  }
}

TEST(Beton, with_a_wrong_number_is_an_error_that_says_where) {
  const std::string bytes = Beton();
  const size_t table = kPage + 16;
  // Page size, count, table; image's mode, place; raw image's width; entries' places and sizes.
  for (const size_t at : {size_t{4}, size_t{8}, size_t{16}, kRows, kRows + 5, kRows + 24 + 1,
                          kRows + 24 + 5, table + 8, table + 16, table + 32, table + 40}) {
    for (const int value : {0xff, 3}) {
      const std::string bad = Replaced(bytes, at, std::string(2, static_cast<char>(value)));
      const Scanned scanned = ScanIt(bad);
      EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << at << " " << value;
      EXPECT_THAT(scanned.status.ToString(), HasSubstr("shard, offset ")) << at;
    }
    if (at < 24 || at >= table) {
      EXPECT_FALSE(ScanIt(Replaced(bytes, at, std::string(8, '\xff'))).status.ok()) << at;
    }
  }
  EXPECT_EQ(ScanIt(Replaced(bytes, 0, "\x03")).status.code(), Code::kUnimplemented);
  EXPECT_EQ(ScanIt(Replaced(bytes, 24, "\xff")).status.code(), Code::kUnimplemented);
  EXPECT_THAT(ScanIt(Replaced(bytes, 2, "\xff\xff")).status.ToString(), HasSubstr("limit"));
}

// A thousand millions of its rows would fit into a file of a few bytes.
TEST(Beton, without_a_field_is_an_error) {
  const std::string head = Number<uint16_t>(2) + Number<uint16_t>(0) +
                           Number(static_cast<uint32_t>(kPage)) + Number<uint64_t>(1) +
                           Number<uint64_t>(24);
  EXPECT_EQ(ParseBeton(AsBytes(head), 24).code(), Code::kDataLoss);
}

TEST(Beton, has_rows_as_numpy_aligns_them) {
  const auto layout = [](const std::vector<uint8_t>& types) {
    std::string head = Number<uint16_t>(2) + Number(static_cast<uint16_t>(types.size())) +
                       Number(static_cast<uint32_t>(kPage)) + Number<uint64_t>(1) +
                       Number<uint64_t>(10'000);
    for (const uint8_t type : types) head += Field(type, "f");
    const auto parsed = ParseBeton(AsBytes(head), 10'000);
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    std::string text;
    for (const BetonField& field : parsed->fields) text += std::to_string(field.offset) + ",";
    return text + std::to_string(parsed->row_bytes);
  };
  EXPECT_EQ(layout({2, 1}), "0,16,24");
  EXPECT_EQ(layout({2, 0, 1}), "0,16,24,32");
  EXPECT_EQ(layout({3, 1}), "0,16,24");
  EXPECT_EQ(layout({2}), "0,13");
}

}  // namespace
}  // namespace forebay::format
