#include "format/recordio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/little_endian.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using testing::CutNear;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::Number;
using testing::Replaced;
using testing::RunScan;
using testing::Scanned;
using Multipart = RecordIoOptions::Multipart;
using Payload = RecordIoOptions::Payload;

const std::string kMagic = Number(kRecordIoMagic);

std::string Part(uint32_t flag, std::string data) {
  std::string frame = kMagic + Number<uint32_t>(flag << 29 | static_cast<uint32_t>(data.size()));
  data.resize((data.size() + 3) / 4 * 4);
  return frame + data;
}

// As MXNet writes: cut at each magic number at a multiple of four.
std::string Write(const std::string& payload) {
  std::vector<std::string> parts(1);
  for (size_t at = 0; at < payload.size();) {
    if (at % 4 == 0 && payload.compare(at, 4, kMagic) == 0) {
      parts.emplace_back();
      at += 4;
    } else {
      parts.back() += payload[at++];
    }
  }
  if (parts.size() == 1) return Part(0, payload);
  std::string frames;
  for (size_t i = 0; i < parts.size(); ++i) {
    frames += Part(i == 0 ? 1 : i + 1 == parts.size() ? 3 : 2, parts[i]);
  }
  return frames;
}

std::string Image(const std::vector<float>& labels, uint64_t id, const std::string& image) {
  const bool one = labels.size() == 1;
  std::string payload = Number<uint32_t>(one ? 0 : static_cast<uint32_t>(labels.size())) +
                        Number(one ? labels[0] : 0.0F) + Number(id) + Number<uint64_t>(0);
  for (size_t i = 0; !one && i < labels.size(); ++i) payload += Number(labels[i]);
  return payload + image;
}

Scanned ScanIt(const std::string& bytes, const RecordIoOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanRecordIo(shard, options, on, report);
  });
}

Result<std::string> Open(const std::string& frames, Multipart multipart = Multipart::kMxnet) {
  std::vector<std::byte> scratch;
  const auto payload = OpenRecordIo(AsBytes(frames), multipart, &scratch);
  if (!payload.ok()) return payload.status();
  return std::string(AsText(*payload));
}

std::vector<std::string> Payloads(const std::string& bytes, const Scanned& scanned) {
  std::vector<std::string> payloads;
  for (const FoundRecord& record : scanned.records) {
    const auto payload = Open(bytes.substr(record.range.offset, record.range.size()));
    EXPECT_TRUE(payload.ok()) << payload.status().ToString();
    EXPECT_EQ(payload->size(), record.fields.at(0).bytes);
    const FoundField& field = record.fields[0];
    if (field.range.size() == field.bytes) {
      EXPECT_EQ(bytes.substr(field.range.offset, field.bytes), *payload);
    }
    payloads.push_back(*payload);
  }
  return payloads;
}

TEST(RecordIo, has_the_frames_that_dmlc_writes) {
  const std::string bytes = std::string("\x0a\x23\xd7\xce\x04\0\0\x20", 8) + "AAAA" +
                            std::string("\x0a\x23\xd7\xce\x05\0\0\x60", 8) + "BBBBC" +
                            std::string(3, '\0');
  EXPECT_EQ(Write("AAAA" + kMagic + "BBBBC"), bytes);
  const auto joined = Open(bytes);
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(*joined, "AAAA" + kMagic + "BBBBC");
  EXPECT_EQ(Write("AA" + kMagic + "B"), Part(0, "AA" + kMagic + "B"));
}

TEST(RecordIo, gives_the_records_in_order) {
  std::string magics;
  for (int i = 0; i < 100; ++i) magics += kMagic;
  const std::vector<std::string> payloads = {"one",  "",     "AAAA" + kMagic + "BBBBC",
                                             kMagic, magics, std::string(70001, 'x')};
  std::string bytes;
  for (const std::string& payload : payloads) bytes += Write(payload);
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_EQ(Payloads(bytes, scanned), payloads);
  EXPECT_TRUE(scanned.HasOddity("3 records of several parts"));
}

TEST(RecordIo, joins_the_parts_of_sagemakers_writers_without_the_magic) {
  const std::string bytes = Part(1, "abc") + Part(2, "de") + Part(3, "fgh") + Part(0, "i");
  const Scanned scanned = ScanIt(bytes, {.multipart = Multipart::kSageMaker});
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 2U);
  EXPECT_EQ(scanned.records[0].fields[0].bytes, 8U);
  const auto joined = Open(bytes.substr(0, 36), Multipart::kSageMaker);
  ASSERT_TRUE(joined.ok()) << joined.status().ToString();
  EXPECT_EQ(*joined, "abcdefgh");
  EXPECT_THAT(ScanIt(bytes).status.ToString(), HasSubstr("SageMaker"));
}

TEST(RecordIo, with_parts_in_another_order_is_an_error) {
  for (const std::string& bytes :
       {Part(2, "a"), Part(3, "a"), Part(1, "aaaa") + Part(0, "b"), Part(1, "aaaa") + Part(1, "b"),
        Part(4, "a"), Part(7, "a"), Part(1, "aaaa") + Part(5, "b")}) {
    EXPECT_THAT(ScanIt(bytes).status.ToString(), HasSubstr("found flag"));
    EXPECT_EQ(Open(bytes).code(), Code::kDataLoss);
  }
}

TEST(RecordIo, with_a_changed_header_is_an_error_that_says_where) {
  const std::string bytes = Part(0, "one!") + Part(0, "two!");
  for (const size_t at : {0, 1, 2, 3, 6, 7, 12, 15, 18, 19}) {
    const Scanned scanned = ScanIt(Flipped(bytes, at));
    EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << at;
    EXPECT_THAT(scanned.status.ToString(), HasSubstr("shard, offset ")) << at;
  }
}

TEST(RecordIo, that_is_cut_is_an_error_or_loses_its_last_record) {
  const std::string bytes = Part(0, "one") + Part(1, "aaaa") + Part(3, "b") + Part(0, "three");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const size_t whole = size < 12 ? 0 : size < 36 ? 1 : 2;
    const bool boundary = size == 0 || size == 12 || size == 36;
    const Scanned scanned = ScanIt(cut);
    EXPECT_EQ(scanned.status.ok(), boundary) << size;
    EXPECT_EQ(scanned.records.size(), whole) << size;
    const Scanned dropped = ScanIt(cut, {.drop_tail = true});
    EXPECT_TRUE(dropped.status.ok()) << size;
    EXPECT_EQ(dropped.records.size(), whole) << size;
    if (!boundary) {
      EXPECT_TRUE(dropped.HasOddity("cut: expected"));
    }
    EXPECT_EQ(Open(cut).ok(), size == 12);
  }
}

TEST(RecordIo, keeps_its_limits) {
  const std::string most = kMagic + Number<uint32_t>((uint32_t{1} << 29) - 1);
  EXPECT_THAT(ScanIt(most + "data").status.ToString(), HasSubstr("cut: expected 536870920"));
  EXPECT_EQ(Open(most + "data").code(), Code::kDataLoss);
  EXPECT_THAT(ScanIt(Part(0, "four!"), {.max_record_bytes = 4}).status.ToString(),
              HasSubstr("limit of 4"));
  EXPECT_THAT(ScanIt(Write(kMagic + kMagic), {.max_parts = 2}).status.ToString(),
              HasSubstr("limit of 2"));
}

TEST(RecordIo, of_images_gives_label_id_and_image) {
  const std::string bytes = Write(Image({3}, 17, "jpeg")) + Write(Image({1, 2, 5}, 4, "png")) +
                            Write(Image({1, 2}, kRecordIoMagic, "cut"));
  const Scanned scanned = ScanIt(bytes, {.payload = Payload::kImage});
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 3U);
  const auto field = [&](size_t record, size_t i) {
    const FoundField& f = scanned.records[record].fields[i];
    return bytes.substr(f.range.offset, f.range.size());
  };
  EXPECT_EQ(scanned.records[0].key, "17");
  EXPECT_EQ(field(0, 0), Number<uint64_t>(17));
  EXPECT_EQ(field(0, 1), Number(3.0F));
  EXPECT_EQ(field(0, 2), "jpeg");
  EXPECT_EQ(field(1, 1), Number(1.0F) + Number(2.0F) + Number(5.0F));
  EXPECT_EQ(field(1, 2), "png");
  // Its id is the magic number, which cut it in two: the fields have to be opened.
  const FoundRecord& cut = scanned.records[2];
  EXPECT_EQ(cut.key, std::to_string(kRecordIoMagic));
  EXPECT_EQ(cut.fields[2].range, cut.range);
  const auto payload = Open(bytes.substr(cut.range.offset, cut.range.size()));
  ASSERT_TRUE(payload.ok());
  const auto image = OpenImageRecord(AsBytes(*payload));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->id, kRecordIoMagic);
  EXPECT_EQ(AsText(image->image), "cut");
  EXPECT_EQ(image->labels.size(), 8U);
  EXPECT_EQ(cut.fields[2].bytes, 3U);
}

TEST(RecordIo, of_an_augmented_manifest_gives_a_sample_of_its_attributes) {
  const std::string bytes = Part(0, "jpeg") + Part(0, "7") + Part(0, "png!") + Part(0, "8");
  const RecordIoOptions options{.attributes = {"source-ref", "class"}};
  const Scanned scanned = ScanIt(bytes, options);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 2U);
  const FoundField& label = scanned.records[1].fields.at(1);
  EXPECT_EQ(label.name, "class");
  EXPECT_EQ(bytes.substr(label.range.offset, label.bytes), "8");
  EXPECT_EQ(scanned.records[1].range, (ByteRange{24, 48}));
  const std::string cut = bytes.substr(0, 36);
  EXPECT_THAT(ScanIt(cut, options).status.ToString(), HasSubstr("expected 2 attributes"));
  RecordIoOptions drop = options;
  drop.drop_tail = true;
  for (const std::string& shorter : {cut, cut + "more"}) {
    EXPECT_TRUE(ScanIt(shorter, drop).status.ok());
    EXPECT_EQ(ScanIt(shorter, drop).records.size(), 1U);
    EXPECT_TRUE(ScanIt(shorter, drop).HasOddity("1 attributes only"));
  }
}

TEST(RecordIo, with_an_image_header_that_lies_is_an_error) {
  const std::string payload = Image({1, 2, 5}, 4, "png");
  for (const uint32_t labels : {5U, 0x40000000U, UINT32_MAX}) {
    const std::string lying = Replaced(payload, 0, Number(labels));
    EXPECT_THAT(OpenImageRecord(AsBytes(lying)).status().ToString(), HasSubstr("cut"));
    EXPECT_EQ(ScanIt(Part(0, lying), {.payload = Payload::kImage}).status.code(), Code::kDataLoss);
  }
  for (size_t size = 0; size < 36; ++size) {
    EXPECT_FALSE(OpenImageRecord(AsBytes(payload.substr(0, size))).ok());
  }
}

TEST(RecordIo, has_an_index_that_is_checked) {
  const auto parsed = ParseRecordIoIndex("7\t12\n3\t0\nx y\t24", 100);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_THAT(*parsed, ::testing::ElementsAre(RecordIoPlace{"3", 0}, RecordIoPlace{"7", 12},
                                              RecordIoPlace{"x y", 24}));
  for (const char* bad : {"0 12", "0\t", "0\tx", "0\t13", "0\t96", "0\t18446744073709551615",
                          "0\t18446744073709551616", "0\t-4", "0\t4\n1\t4", "0\t4 "}) {
    EXPECT_EQ(ParseRecordIoIndex(bad, 100).code(), Code::kDataLoss) << bad;
  }
}

}  // namespace
}  // namespace forebay::format
