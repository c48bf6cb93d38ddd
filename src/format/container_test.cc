#include "format/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/tfrecord.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Number;

// "name=bytes" of every field, fetched by its range and opened.
Result<std::vector<std::string>> Fields(Kind kind, const std::string& bytes,
                                        const ContainerOptions& options = {}) {
  std::vector<std::string> fields;
  std::vector<std::byte> scratch;
  ScanReport report;
  const auto on_record = [&](const FoundRecord& record) -> Status {
    for (const FoundField& field : record.fields) {
      const std::string_view fetched =
          std::string_view(bytes).substr(field.range.offset, field.range.size());
      FB_ASSIGN_OR_RETURN(
          const ByteView opened,
          OpenField(kind, options, field.name, AsBytes(fetched), field.bytes, &scratch));
      fields.push_back(field.name + "=" + std::string(AsText(opened)));
    }
    return {};
  };
  FB_RETURN_IF_ERROR(ScanContainer(kind, testing::ShardOf(bytes), options, on_record, &report));
  return fields;
}

std::string Frame(const std::string& data) {
  const std::string length = Number<uint64_t>(data.size());
  return length + Number(MaskCrc32c(Crc32c(AsBytes(length)))) + data +
         Number(MaskCrc32c(Crc32c(AsBytes(data))));
}

std::string Part(uint32_t flag, std::string data) {
  const std::string head = Number(kRecordIoMagic) + Number<uint32_t>(flag << 29 | data.size());
  data.resize((data.size() + 3) / 4 * 4);
  return head + data;
}

TEST(Container, opens_the_fields_of_whatever_it_scans) {
  EXPECT_THAT(*Fields(Kind::kTfRecord, Frame("one") + Frame("")), ElementsAre("data=one", "data="));
  EXPECT_THAT(*Fields(Kind::kJsonl, "{}\n{\"a\":1}\n"), ElementsAre("json={}", "json={\"a\":1}"));
  EXPECT_THAT(*Fields(Kind::kCsv, "a,b\n1,2\n"), ElementsAre("csv=1,2"));
  EXPECT_THAT(*Fields(Kind::kRecordIo, Part(0, "one") + Part(1, "AAAA") + Part(3, "B")),
              ElementsAre("data=one",
                          "data=AAAA\x0a\x23\xd7\xce"
                          "B"));
  ContainerOptions options;
  options.multipart = RecordIoOptions::Multipart::kSageMaker;
  EXPECT_THAT(*Fields(Kind::kRecordIo, Part(1, "A") + Part(3, "B"), options),
              ElementsAre("data=AB"));
  options.attributes = {"a", "b"};
  EXPECT_THAT(*Fields(Kind::kRecordIo, Part(1, "A") + Part(3, "B") + Part(0, "C"), options),
              ElementsAre("a=AB", "b=C"));
}

TEST(Container, opens_image_records_of_one_part_and_of_several) {
  ContainerOptions options;
  options.payload = RecordIoOptions::Payload::kImage;
  const std::string head = Number<uint32_t>(0) + Number(3.0F);
  const std::string id = Number<uint64_t>(kRecordIoMagic);
  const std::string image = Number<uint64_t>(0) + "jpeg";
  const auto expected = ElementsAre("id=" + id, "label=" + Number(3.0F), "image=jpeg");
  EXPECT_THAT(*Fields(Kind::kRecordIo, Part(0, head + id + image), options), expected);
  EXPECT_THAT(*Fields(Kind::kRecordIo, Part(1, head) + Part(3, id.substr(4) + image), options),
              expected);
}

TEST(Container, refuses_a_field_of_another_size) {
  std::vector<std::byte> scratch;
  const std::string frame = Frame("one");
  EXPECT_TRUE(OpenField(Kind::kTfRecord, {}, "data", AsBytes(frame), 3, &scratch).ok());
  EXPECT_EQ(OpenField(Kind::kTfRecord, {}, "data", AsBytes(frame), 4, &scratch).code(),
            Code::kDataLoss);
  EXPECT_EQ(OpenField(Kind::kTar, {}, "jpg", AsBytes("abc"), 4, &scratch).code(), Code::kDataLoss);
  EXPECT_EQ(OpenField(Kind::kRecordIo, {}, "data", AsBytes("abc"), 4, &scratch).code(),
            Code::kDataLoss);
}

TEST(Container, is_found_by_its_content) {
  const std::string frame = Frame("one");
  const auto kind = SniffShard(testing::ShardOf(frame));
  ASSERT_TRUE(kind.ok());
  EXPECT_EQ(*kind, Kind::kTfRecord);
  EXPECT_EQ(*SniffShard(testing::ShardOf("", "x.tar")), Kind::kTar);
  ScanReport report;
  for (const Kind container : Containers()) {
    const Status status = ScanContainer(
        container, testing::ShardOf("\x28\xb5\x2f\xfd zstd"), {},
        [](FoundRecord) { return Status(); }, &report);
    EXPECT_TRUE(status.code() == Code::kUnimplemented || status.code() == Code::kDataLoss)
        << KindName(container) << status.ToString();
  }
  EXPECT_EQ(ScanContainer(
                Kind::kParquet, testing::ShardOf(frame), {}, [](FoundRecord) { return Status(); },
                &report)
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::format
