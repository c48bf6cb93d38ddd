#include "format/mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::Number;
using testing::Replaced;
using testing::RunScan;
using testing::Scanned;
using Kind = MdsValue::Kind;

std::string Columns(const std::string& names, const std::string& encodings,
                    const std::string& sizes) {
  return R"({"format":"mds","version":2,"column_names":)" + names + R"(,"column_encodings":)" +
         encodings + R"(,"column_sizes":)" + sizes + "}";
}

std::string Config(const std::string& sizes = "[null,8,null]") {
  return R"({"column_encodings":["jpeg","int","str"],"column_names":["image","label","text"],)"
         R"("column_sizes":)" +
         sizes + R"(,"compression":null,"format":"mds","hashes":[],"size_limit":null,"version":2})";
}

std::string Sample(const std::string& image, int64_t label, const std::string& text) {
  return Number(static_cast<uint32_t>(image.size())) + Number(static_cast<uint32_t>(text.size())) +
         image + Number(label) + text;
}

std::string Write(const std::vector<std::string>& samples, const std::string& config = Config()) {
  std::string bytes = Number(static_cast<uint32_t>(samples.size()));
  uint64_t at = 4 * (samples.size() + 2) + config.size();
  bytes += Number(static_cast<uint32_t>(at));
  for (const std::string& sample : samples) {
    bytes += Number(static_cast<uint32_t>(at += sample.size()));
  }
  bytes += config;
  for (const std::string& sample : samples) bytes += sample;
  return bytes;
}

std::string TwoSamples() { return Write({Sample("jpeg", 7, "a text"), Sample("", -1, "")}); }

Scanned ScanIt(const std::string& bytes, const MdsOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanMds(shard, options, on, report);
  });
}

std::string IndexOf(uint64_t bytes, uint64_t samples, const std::string& more = "") {
  std::string shard = Config();
  shard.pop_back();
  return R"({"version":2,"shards":[)" + shard +
         R"(,"raw_data":{"basename":"shard.00000.mds","bytes":)" + std::to_string(bytes) +
         R"(,"hashes":{"sha1":"00ff"}},"samples":)" + std::to_string(samples) + more + "}]}";
}

TEST(Mds, gives_the_columns_of_every_sample) {
  const std::string bytes = TwoSamples();
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 2U);
  std::vector<std::string> values;
  for (const FoundField& field : scanned.records[0].fields) {
    EXPECT_EQ(field.bytes, field.range.size());
    EXPECT_TRUE(field.crc32c);
    values.push_back(field.name + "=" + bytes.substr(field.range.offset, field.bytes));
  }
  EXPECT_THAT(values, ElementsAre("image=jpeg", "label=" + Number<int64_t>(7), "text=a text"));
}

TEST(Mds, gives_the_samples_from_the_header_alone) {
  const std::string bytes =
      Write({Sample(std::string(100'000, 'x'), 7, "a text"), Sample("", -1, "")});
  const Scanned scanned = ScanIt(bytes, {.header_only = true});
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 2U);
  EXPECT_LT(scanned.report.bytes_read, bytes.size());
  const std::vector<MdsColumn> columns = {{"image", "jpeg"}, {"label", "int", 8}, {"text", "str"}};
  const ByteRange range = scanned.records[0].range;
  EXPECT_EQ(scanned.records[0].fields[2].range, range);
  EXPECT_EQ(scanned.records[0].fields[1].bytes, 8U);
  const std::string sample = bytes.substr(range.offset, range.size());
  std::vector<ByteView> values;
  ASSERT_TRUE(OpenMdsSample(AsBytes(sample), columns, &values).ok());
  EXPECT_EQ(values[0].size(), 100'000U);
  EXPECT_EQ(AsText(values[2]), "a text");
  for (size_t size = 0; size < sample.size(); size += 1 + size / 9) {
    EXPECT_EQ(OpenMdsSample(AsBytes(sample.substr(0, size)), columns, &values).code(),
              Code::kDataLoss);
  }
  EXPECT_FALSE(OpenMdsSample(AsBytes(sample + "x"), columns, &values).ok());
}

TEST(Mds, of_no_samples_is_one) {
  const Scanned scanned = ScanIt(Write({}));
  EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_TRUE(scanned.records.empty());
}

TEST(Mds, that_is_cut_anywhere_is_an_error) {
  const std::string bytes = TwoSamples();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_EQ(ScanIt(cut).status.code(), Code::kDataLoss) << size;
    EXPECT_EQ(ScanIt(cut, {.header_only = true}).status.code(), Code::kDataLoss) << size;
  }
  EXPECT_EQ(ScanIt(bytes + "x").status.code(), Code::kDataLoss);
}

TEST(Mds, with_a_wrong_number_is_an_error_that_says_where) {
  const std::string bytes = TwoSamples();
  const size_t samples =
      bytes.size() - Sample("jpeg", 7, "a text").size() - Sample("", 0, "").size();
  for (const size_t at : {size_t{0}, size_t{4}, size_t{8}, size_t{12}, samples, samples + 4}) {
    for (const std::string& bad : {Flipped(bytes, at), Replaced(bytes, at, Number(UINT32_MAX)),
                                   Replaced(bytes, at, Number<uint32_t>(0))}) {
      const Scanned scanned = ScanIt(bad);
      EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << at;
      EXPECT_THAT(scanned.status.ToString(), HasSubstr("shard, offset ")) << at;
    }
  }
  // Offsets that wrapped at 4 GiB.
  EXPECT_THAT(ScanIt(Replaced(bytes, 8, Number<uint32_t>(1))).status.ToString(),
              HasSubstr("4 GiB"));
  EXPECT_THAT(ScanIt(bytes, {.max_sample_bytes = 10}).status.ToString(), HasSubstr("limit of 10"));
}

TEST(Mds, with_another_description_is_an_error) {
  for (const std::string& config :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"version\":2}"),
        std::string(R"({"format":"mds","version":2})"), Columns(R"(["a"])", "[]", "[1]"),
        Columns(R"(["a"])", R"(["int"])", "[-8]"),
        Columns(R"(["a","a"])", R"(["int","int"])", "[8,8]")}) {
    EXPECT_EQ(ScanIt(Write({"12345678"}, config)).status.code(), Code::kDataLoss) << config;
  }
  EXPECT_EQ(ScanIt(Write({}, R"({"format":"jsonl","version":2})")).status.code(),
            Code::kUnimplemented);
  EXPECT_EQ(ScanIt(Write({}, R"({"format":"mds","version":3})")).status.code(),
            Code::kUnimplemented);
}

TEST(Mds, is_held_to_its_index) {
  const std::string bytes = TwoSamples();
  auto index = ParseMdsIndex(IndexOf(bytes.size(), 2));
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  MdsShard expected = index->at(0);
  EXPECT_EQ(expected.raw.name, "shard.00000.mds");
  EXPECT_THAT(expected.raw.hashes,
              ElementsAre(std::pair<std::string, std::string>("sha1", "00ff")));
  EXPECT_FALSE(expected.zip);
  EXPECT_TRUE(ScanIt(bytes, {.expected = &expected}).status.ok());
  expected.samples = 3;
  EXPECT_THAT(ScanIt(bytes, {.expected = &expected}).status.ToString(), HasSubstr("3 samples"));
  expected.samples = 2;
  expected.raw.bytes += 1;
  EXPECT_FALSE(ScanIt(bytes, {.expected = &expected}).status.ok());
  expected.raw.bytes -= 1;
  expected.columns[0].encoding = "png";
  EXPECT_THAT(ScanIt(bytes, {.expected = &expected}).status.ToString(), HasSubstr("the columns"));
}

TEST(MdsIndex, is_checked) {
  const auto zipped = ParseMdsIndex(IndexOf(
      9, 2,
      R"(,"compression":"zstd:3","zip_data":{"basename":"s.mds.zstd","bytes":5,"hashes":{}})"));
  ASSERT_TRUE(zipped.ok()) << zipped.status().ToString();
  EXPECT_EQ(zipped->at(0).compression, "zstd:3");
  EXPECT_EQ(zipped->at(0).zip->name, "s.mds.zstd");
  for (const std::string& bad :
       {std::string("{}"), std::string("{\"shards\":[1]}"), std::string(5000, '['),
        IndexOf(9, 2).replace(IndexOf(9, 2).find("shard.0"), 5, "../.."), IndexOf(9, 2, ",")}) {
    EXPECT_EQ(ParseMdsIndex(bad).code(), Code::kDataLoss) << bad.substr(0, 100);
  }
}

std::string Describe(const std::string& bytes, std::string_view encoding) {
  MdsValue value;
  const Status status = OpenMdsValue(AsBytes(bytes), encoding, &value);
  if (!status.ok()) return std::string(CodeName(status.code()));
  std::string text(value.dtype);
  for (const uint64_t dimension : value.shape) text += "," + std::to_string(dimension);
  switch (value.kind) {
    case Kind::kInteger:
      return "integer " + std::to_string(value.integer);
    case Kind::kFloat:
      return "float " + std::to_string(value.number);
    case Kind::kImages:
      return "images " + std::to_string(value.items.size());
    case Kind::kRawImage:
      return "raw " + std::string(value.mode) + text + " " + std::string(AsText(value.data));
    default:
      return text + " " + std::string(AsText(value.data));
  }
}

TEST(MdsValue, is_what_its_encoding_says) {
  EXPECT_EQ(Describe("x", "bytes"), " x");
  EXPECT_EQ(Describe("x", "str"), " x");
  EXPECT_EQ(Describe("12345678", "int"), "int64 12345678");
  EXPECT_EQ(Describe("1234567", "int"), "data_loss");
  EXPECT_EQ(Describe("12", "float16"), "float16 12");
  EXPECT_EQ(Describe("-12", "str_int"), "integer -12");
  EXPECT_EQ(Describe("9223372036854775808", "str_int"), "data_loss");
  EXPECT_EQ(Describe("1.5", "str_float"), "float 1.500000");
  EXPECT_EQ(Describe("1.5x", "str_decimal"), "data_loss");
  EXPECT_EQ(Describe(std::string("\x10\x08\x02\x01", 4) + "abcd", "ndarray"), "uint16,2,1 abcd");
  EXPECT_EQ(Describe(std::string("\x05\x02\x00", 3) + "ab", "ndarray:uint8"), "uint8,2 ab");
  EXPECT_EQ(Describe("abcdef", "ndarray:uint8:2,3"), "uint8,2,3 abcdef");
  EXPECT_EQ(Describe("abcde", "ndarray:uint8:2,3"), "data_loss");
  EXPECT_EQ(Describe("abcde", "ndarray:uint8:2,x"), "data_loss");
  EXPECT_EQ(Describe("\x63\x04\x01z", "ndarray"), "data_loss");
  EXPECT_EQ(Describe("\x08\x0b" + std::string(16, '\xff') + "a", "ndarray"), "data_loss");
  EXPECT_EQ(Describe("", "ndarray"), "data_loss");
  EXPECT_EQ(Describe("x", "ndarray:object"), "unimplemented");
  const std::string image =
      Number<uint32_t>(2) + Number<uint32_t>(1) + Number<uint32_t>(3) + "RGBabcdef";
  EXPECT_EQ(Describe(image, "pil"), "raw RGB,1,2 abcdef");
  EXPECT_EQ(Describe(image + "g", "pil"), "data_loss");
  EXPECT_EQ(Describe(Replaced(image, 0, Number(UINT32_MAX)), "pil"), "data_loss");
  EXPECT_EQ(Describe(Replaced(image, 8, Number(UINT32_MAX)), "pil"), "data_loss");
  const std::string list = Number<uint32_t>(2) + Number<uint32_t>(1) + Number<uint32_t>(2) + "abc";
  EXPECT_EQ(Describe(list, "jpeg_array"), "images 2");
  EXPECT_EQ(Describe(list + "d", "jpeg_array"), "data_loss");
  EXPECT_EQ(Describe(Number<uint32_t>(0) + list, "list[png]"), "images 2");
  EXPECT_EQ(Describe(list, "list[png]"), "data_loss");
  EXPECT_EQ(Describe(Replaced(list, 0, Number(UINT32_MAX)), "jpeg_array"), "data_loss");
  EXPECT_EQ(Describe("\x80\x04.", "pkl"), "unimplemented");
  EXPECT_EQ(Describe("x", "video"), "unimplemented");
}

TEST(Mds, says_which_columns_are_pickled) {
  const std::string config = Columns(R"(["p"])", R"(["pkl"])", "[null]");
  const Scanned scanned = ScanIt(Write({Number<uint32_t>(2) + "\x80."}, config));
  EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_TRUE(scanned.HasOddity("column 'p' is pickled"));
}

}  // namespace
}  // namespace forebay::format
