#include "format/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunScan;
using testing::Scanned;

Scanned ScanJson(const std::string& bytes, const LinesOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanJsonLines(shard, options, on, report);
  });
}

Scanned ScanTable(const std::string& bytes, const CsvOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanCsv(shard, options, on, report);
  });
}

std::vector<std::string> Texts(const std::string& bytes, const Scanned& scanned) {
  EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  std::vector<std::string> texts;
  for (const FoundRecord& record : scanned.records) {
    EXPECT_TRUE(record.fields.at(0).crc32c);
    texts.push_back(bytes.substr(record.fields[0].range.offset, record.fields[0].bytes));
  }
  return texts;
}

std::vector<std::string> Lines(const std::string& bytes) { return Texts(bytes, ScanJson(bytes)); }

TEST(JsonLines, are_what_lies_between_line_ends) {
  EXPECT_THAT(Lines("{\"a\":1}\n{}\n"), ElementsAre("{\"a\":1}", "{}"));
  EXPECT_THAT(Lines("{\"a\":1}\r\n\r\n \t\n\n{}\r\n"), ElementsAre("{\"a\":1}", "{}"));
  EXPECT_THAT(Lines("{\"a\":\"\\\"}\"}"), ElementsAre("{\"a\":\"\\\"}\"}"));
  EXPECT_THAT(Lines("{}\n\n  "), ElementsAre("{}"));
  EXPECT_THAT(Lines("a\rb\r\r\n"), ElementsAre("a\rb\r"));
  EXPECT_THAT(Lines(""), ElementsAre());
  EXPECT_THAT(Lines("\n"), ElementsAre());
}

TEST(JsonLines, pass_over_a_mark_of_utf8_and_refuse_utf16) {
  const std::string bytes = "\xef\xbb\xbf{}\n{}";
  const Scanned scanned = ScanJson(bytes);
  EXPECT_THAT(Texts(bytes, scanned), ElementsAre("{}", "{}"));
  EXPECT_EQ(scanned.records[0].range.offset, 3U);
  EXPECT_TRUE(scanned.HasOddity("UTF-8"));
  EXPECT_EQ(ScanJson("\xff\xfe{").status.code(), Code::kUnimplemented);
}

TEST(JsonLines, that_are_cut_are_an_error_or_lose_the_last) {
  const std::string bytes = "{\"a\": [1, {\"b\": \"x}\\\"\"}]}\n{\"c\": \"}\"}";
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const size_t line = bytes.find('\n');
    const bool whole = size == 0 || size == line || size == line + 1 || size == bytes.size();
    EXPECT_EQ(ScanJson(cut).status.ok(), whole) << cut;
    const Scanned dropped = ScanJson(cut, {.drop_tail = true});
    EXPECT_TRUE(dropped.status.ok());
    EXPECT_EQ(dropped.records.size(), size == bytes.size() ? 2U : size >= line ? 1U : 0U) << cut;
    EXPECT_EQ(dropped.report.oddities, whole && size > 0 ? 0U : 1U) << cut;
  }
}

TEST(JsonLines, keep_their_limit_and_refuse_what_is_compressed) {
  EXPECT_THAT(ScanJson("{\"a\":1}\n", {.max_line_bytes = 6}).status.ToString(),
              HasSubstr("limit of 6"));
  EXPECT_TRUE(ScanJson("{\"a\":1}\n", {.max_line_bytes = 7}).status.ok());
  EXPECT_THAT(ScanJson("\x28\xb5\x2f\xfd zstd").status.ToString(), HasSubstr("unpack it"));
}

TEST(JsonLines, are_the_same_wherever_the_window_ends) {
  Random random(3);
  std::string bytes;
  std::vector<std::string> expected;
  while (bytes.size() < (size_t{17} << 20)) {
    const size_t size = expected.size() == 3 ? size_t{9} << 20 : random.NextBelow(60'000);
    std::string line =
        "{\"text\":\"" + std::string(size, static_cast<char>('a' + size % 26)) + "\"}";
    bytes += line + (size % 2 == 0 ? "\n" : "\r\n");
    expected.push_back(std::move(line));
  }
  const Scanned scanned = ScanJson(bytes);
  EXPECT_EQ(Texts(bytes, scanned), expected);
  EXPECT_EQ(scanned.report.bytes_read, bytes.size());
}

TEST(Csv, ends_no_line_between_quotes) {
  const std::string bytes = "name,text\r\na,\"two\nlines \"\"q\"\"\"\r\nb,one\n\nc,";
  EXPECT_THAT(Texts(bytes, ScanTable(bytes)),
              ElementsAre("a,\"two\nlines \"\"q\"\"\"", "b,one", "c,"));
  CsvOptions bare;
  bare.header = false;
  EXPECT_EQ(Texts(bytes, ScanTable(bytes, bare)).size(), 4U);
  EXPECT_THAT(ScanTable("a,b\n1,\"open\n2,3\n").status.ToString(), HasSubstr("not closed"));
}

TEST(Csv, is_split_into_cells) {
  const auto split = [](std::string_view line) -> std::string {
    std::vector<std::string_view> cells;
    std::string scratch;
    const Status status = SplitCsvLine(AsBytes(line), ',', '"', &cells, &scratch);
    if (!status.ok()) return status.code() == Code::kDataLoss ? "damaged" : "?";
    std::string text;
    for (const std::string_view cell : cells) text += "[" + std::string(cell) + "]";
    return text;
  };
  EXPECT_EQ(split("a,b"), "[a][b]");
  EXPECT_EQ(split(""), "[]");
  EXPECT_EQ(split(",a,"), "[][a][]");
  EXPECT_EQ(split("\"a,\"\"b\"\"\",\"\nc\",\"\""), "[a,\"b\"][\nc][]");
  EXPECT_EQ(split("a\"b,c"), "[a\"b][c]");
  EXPECT_EQ(split("\"a"), "damaged");
  EXPECT_EQ(split("\"a\"b"), "damaged");
}

}  // namespace
}  // namespace forebay::format
