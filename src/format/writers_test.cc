// What the writers of shards make, byte by byte where a format's own examples are known, and read
// back by our readers. The formats' own readers read it in python/tests/test_pack_reference.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "format/frames_writer.h"
#include "format/mds_writer.h"
#include "format/npy.h"
#include "format/sagemaker_record.h"
#include "format/sagemaker_writer.h"
#include "format/tar.h"
#include "format/tar_writer.h"
#include "format/tfrecord.h"
#include "format/wire.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Multipart = RecordIoOptions::Multipart;
using Bytes = std::vector<std::byte>;

Shard ShardOf(const Bytes& bytes, std::string name = "shard") {
  return {.name = std::move(name),
          .size = bytes.size(),
          .read = [&bytes](ByteRange range, MutableBytes into) {
            std::memcpy(into.data(), bytes.data() + range.offset, range.size());
            return Status();
          }};
}

std::string Hex(ByteView bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

template <class T>
OutputField Numbers(std::string_view name, std::string_view dtype, const std::vector<T>& numbers) {
  return {name, std::as_bytes(std::span(numbers)), dtype, {static_cast<int64_t>(numbers.size())}};
}

OutputField Text(std::string_view name, std::string_view text) {
  return {name, AsBytes(text), {}, {}};
}

TEST(TarWriter, writes_members_that_the_scan_finds_where_they_are) {
  TarWriter writer;
  const std::string long_folder(120, 'd'), longest(300, 'n');
  const std::vector<std::pair<std::string, std::string>> members = {
      {"a.txt", "hello"},
      {"b.txt", ""},
      {long_folder + "/c.txt", std::string(512, 'x')},
      {longest + ".txt", std::string(513, 'y')},
      {"ü/d.txt", "z"}};
  uint64_t expected = 0;
  for (const auto& [name, text] : members) {
    ASSERT_TRUE(writer.Add(name, AsBytes(text)).ok());
    expected += TarWriter::BytesOf(name, text.size());
  }
  const Bytes tar = writer.Finish();
  EXPECT_EQ(tar.size() % TarWriter::kRecordBytes, 0U);
  EXPECT_LE(expected + 1024, tar.size());
  EXPECT_LT(tar.size() - expected - 1024, TarWriter::kRecordBytes);
  ScanReport report;
  size_t i = 0;
  ASSERT_TRUE(ScanTar(
                  ShardOf(tar), {},
                  [&](const FoundRecord& record) {
                    EXPECT_EQ(record.key + ".txt", members[i].first);
                    const ByteRange range = record.fields.at(0).range;
                    EXPECT_EQ(AsText(ByteView(tar).subspan(range.offset, range.size())),
                              members[i].second);
                    ++i;
                    return Status();
                  },
                  &report)
                  .ok());
  EXPECT_EQ(i, members.size());
  EXPECT_EQ(report.oddities, 0U);
}

TEST(TarWriter, writes_ustar_headers_without_times_and_owners) {
  TarWriter writer;
  ASSERT_TRUE(writer.Add("a.txt", AsBytes("hello")).ok());
  const Bytes tar = writer.Finish();
  const std::string_view head = AsText(tar).substr(0, 512);
  EXPECT_EQ(head.substr(100, 8), std::string_view("0000644\0", 8));
  EXPECT_EQ(head.substr(124, 12), std::string_view("00000000005\0", 12));
  EXPECT_EQ(head.substr(136, 12), std::string_view("00000000000\0", 12));
  EXPECT_EQ(head.substr(257, 8), std::string_view("ustar\0"
                                                  "00",
                                                  8));
  EXPECT_EQ(head[156], '0');
}

TEST(TarWriter, takes_no_name_that_a_reader_would_change) {
  TarWriter writer;
  for (const std::string_view name :
       {std::string_view(""), std::string_view("a/"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(writer.Add(name, {}).code(), Code::kInvalidArgument);
  }
}

TEST(FramesWriter, writes_tfrecords_with_both_checksums) {
  Bytes out;
  ASSERT_TRUE(AppendTfRecord({}, &out).ok());
  EXPECT_EQ(Hex(out), "000000000000000029039807d8ea82a2");
  ASSERT_TRUE(AppendTfRecord(AsBytes("123456789"), &out).ok());
  const auto data = OpenTfRecord(ByteView(out).subspan(16));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(AsText(*data), "123456789");
  EXPECT_EQ(Hex(ByteView(out).last(4)), "e5b08ac7");
}

TEST(FramesWriter, cuts_recordio_where_the_magic_number_stands_as_mxnet_does) {
  const std::string magic("\x0a\x23\xd7\xce", 4);
  Bytes out;
  ASSERT_TRUE(AppendRecordIo(AsBytes("AAAA" + magic + "BBBBC"), Multipart::kMxnet, &out).ok());
  EXPECT_EQ(Hex(out), "0a23d7ce04000020414141410a23d7ce050000604242424243000000");
  const std::vector<std::string> payloads = {
      "", "abc", magic, magic + magic, "abcd" + magic, "a" + magic + "bcd", magic + "x" + magic};
  for (const Multipart multipart : {Multipart::kMxnet, Multipart::kSageMaker}) {
    for (const std::string& payload : payloads) {
      Bytes frames, scratch;
      ASSERT_TRUE(AppendRecordIo(AsBytes(payload), multipart, &frames).ok());
      EXPECT_EQ(frames.size() % 4, 0U);
      const auto opened = OpenRecordIo(frames, multipart, &scratch);
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      EXPECT_EQ(AsText(*opened), payload);
    }
  }
}

TEST(FramesWriter, puts_one_label_into_the_header_and_several_behind_it) {
  for (const std::vector<float>& labels : {std::vector<float>{7.5F}, std::vector<float>{1, 2, 3}}) {
    const Bytes payload = ImagePayload(42, labels, AsBytes("image"));
    const auto image = OpenImageRecord(payload);
    ASSERT_TRUE(image.ok());
    EXPECT_EQ(image->id, 42U);
    EXPECT_EQ(AsText(image->image), "image");
    ASSERT_EQ(image->labels.size(), labels.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(image->labels.data(), labels.data(), image->labels.size()), 0);
  }
}

TEST(FramesWriter, sorts_the_features_of_an_example_and_refuses_a_name_twice) {
  const std::vector<int64_t> ints = {-1, 300};
  const std::vector<float> floats = {1.0F};
  Bytes one, other;
  const OutputField a = Numbers("a", "int64", ints), b = Text("b", "xy"),
                    c = Numbers("c", "float32", floats);
  ASSERT_TRUE(AppendExample({a, b, c}, &one).ok());
  ASSERT_TRUE(AppendExample({c, a, b}, &other).ok());
  EXPECT_EQ(Hex(one), Hex(other));
  EXPECT_EQ(Hex(one),
            "0a330a150a016112101a0e0a0cffffffffffffffffff01ac020a0b0a016212060a040a0278790a0d0a01"
            "63120812060a040000803f");
  EXPECT_EQ(AppendExample({a, a}, &one).code(), Code::kInvalidArgument);
}

TEST(SageMakerWriter, writes_dense_sparse_and_bytes_as_its_reader_reads_them) {
  const std::vector<float> row = {1, 0.5F, -2};
  const std::vector<int32_t> label = {-7};
  const std::vector<double> doubles = {3.25};
  const SparseOutput sparse{.keys = {1, 5}, .shape = {10}};
  const SparseOutput zeros{.keys = {}, .shape = {10}};
  const std::vector<float> two = {1, 2}, none;
  Bytes out;
  ASSERT_TRUE(AppendSageMakerRecord({{Numbers("v", "float32", row)},
                                     {Numbers("d", "float64", doubles)},
                                     {Numbers("s", "float32", two), &sparse},
                                     {Numbers("z", "float32", none), &zeros},
                                     {Text("t", "text")}},
                                    {{Numbers("values", "int32", label)}}, "uid-1", &out)
                  .ok());
  SageMakerRecord record;
  ASSERT_TRUE(OpenSageMakerRecord(out, &record).ok());
  ASSERT_EQ(record.features.size(), 5U);
  EXPECT_EQ(record.uid, "uid-1");
  const auto find = [&](std::string_view name) -> const SageMakerValue& {
    return *std::ranges::find(record.features, name, &SageMakerValue::name);
  };
  EXPECT_EQ(Hex(find("v").values), Hex(std::as_bytes(std::span(row))));
  EXPECT_EQ(find("d").kind, SageMakerValue::Kind::kFloat64);
  EXPECT_TRUE(find("s").sparse);
  EXPECT_THAT(find("s").keys, ElementsAre(1U, 5U));
  EXPECT_TRUE(find("z").sparse);
  EXPECT_EQ(find("z").count(), 0U);
  EXPECT_EQ(AsText(find("t").bytes.at(0)), "text");
  EXPECT_EQ(Hex(record.labels.at(0).values), Hex(std::as_bytes(std::span(label))));
}

TEST(SageMakerWriter, refuses_an_integer_of_more_than_32_bits) {
  const std::vector<int64_t> fits = {INT32_MAX, INT32_MIN}, large = {int64_t{INT32_MAX} + 1};
  Bytes out;
  EXPECT_TRUE(AppendSageMakerRecord({{Numbers("v", "int64", fits)}}, {}, "", &out).ok());
  EXPECT_THAT(AppendSageMakerRecord({{Numbers("v", "int64", large)}}, {}, "", &out).ToString(),
              HasSubstr("2147483648"));
}

TEST(MdsWriter, writes_shards_that_the_scan_and_the_index_agree_on) {
  auto writer = MdsWriter::Make({{"n", "int", 8}, {"a", "bytes"}, {"t", "str"}});
  ASSERT_TRUE(writer.ok());
  const int64_t number = -5;
  const ByteView bytes = std::as_bytes(std::span(&number, 1));
  ASSERT_TRUE(writer->Add({AsBytes("abc"), bytes, AsBytes("text")}).ok());
  ASSERT_TRUE(writer->Add({{}, bytes, AsBytes("")}).ok());
  EXPECT_EQ(writer->Add({{}, {}, {}}).code(), Code::kInvalidArgument);
  const std::vector<MdsColumn> columns = writer->columns();
  const auto shard = writer->Finish();
  ASSERT_TRUE(shard.ok());
  const auto index = ParseMdsIndex(MdsIndexText(columns, {{.columns = {},
                                                           .samples = 2,
                                                           .raw = {"s.mds", shard->size(), {}},
                                                           .zip = {},
                                                           .compression = ""}}));
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  std::vector<std::string> found;
  ScanReport report;
  const Status scanned = ScanMds(
      ShardOf(*shard), {.expected = &index->at(0)},
      [&](const FoundRecord& record) {
        for (const FoundField& field : record.fields) {
          found.push_back(field.name + "=" + std::to_string(field.bytes));
        }
        return Status();
      },
      &report);
  ASSERT_TRUE(scanned.ok()) << scanned.ToString();
  EXPECT_THAT(found, ElementsAre("a=3", "n=8", "t=4", "a=0", "n=8", "t=0"));
}

TEST(MdsWriter, refuses_columns_that_a_reader_could_not_tell_apart) {
  EXPECT_FALSE(MdsWriter::Make({{"a", "bytes"}, {"a", "str"}}).ok());
  EXPECT_FALSE(MdsWriter::Make({{"\xff", "bytes"}}).ok());
  EXPECT_FALSE(MdsWriter::Make({}).ok());
}

TEST(OutputField, becomes_an_npy_file_that_the_reader_reads) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, std::vector<int64_t>{6}, std::vector<int64_t>{2, 3}}) {
    OutputField field = Numbers("x", "float32", numbers);
    if (shape.empty()) field.bytes = field.bytes.first(4);
    field.shape = shape;
    const Bytes file = NpyFileOf(field);
    const auto header = ParseNpyHeader(file);
    ASSERT_TRUE(header.ok()) << header.status().ToString();
    EXPECT_EQ(header->dtype, "float32");
    EXPECT_EQ(header->shape, std::vector<uint64_t>(shape.begin(), shape.end()));
    EXPECT_EQ(header->data_offset % 64, 0U);
    EXPECT_EQ(header->data_offset + field.bytes.size(), file.size());
  }
}

TEST(OutputField, keeps_halves_exactly_as_floats) {
  const std::vector<uint16_t> halves = {0x0000, 0x8000, 0x3c00, 0xc000, 0x0001,
                                        0x7bff, 0x7c00, 0xfc00, 0x03ff, 0x3555};
  const auto floats = FloatsOf(Numbers("h", "float16", halves));
  ASSERT_TRUE(floats.ok());
  EXPECT_THAT(*floats, ElementsAre(0.0F, -0.0F, 1.0F, -2.0F, 0x1p-24F, 65504.0F, INFINITY,
                                   -INFINITY, 1023 * 0x1p-24F, 0x1.554p-2F));
}

TEST(OutputField, of_another_kind_is_refused_by_its_name) {
  const std::vector<uint64_t> large = {UINT64_MAX};
  EXPECT_THAT(IntegersOf(Numbers("n", "uint64", large)).status().ToString(),
              HasSubstr("18446744073709551615"));
  EXPECT_FALSE(IntegersOf(Text("t", "x")).ok());
  EXPECT_FALSE(FloatsOf(Text("t", "x")).ok());
}

}  // namespace
}  // namespace forebay::format
