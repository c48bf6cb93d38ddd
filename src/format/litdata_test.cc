#include "format/litdata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Number;
using testing::Replaced;
using testing::RunScan;
using testing::Scanned;

std::string Item(const std::vector<std::string>& fields) {
  std::string sizes;
  std::string data;
  for (const std::string& field : fields) {
    sizes += Number(static_cast<uint32_t>(field.size()));
    data += field;
  }
  return sizes + data;
}

std::string Chunk(const std::vector<std::string>& items) {
  std::string bytes = Number(static_cast<uint32_t>(items.size()));
  auto at = static_cast<uint32_t>(4 * (items.size() + 2));
  bytes += Number(at);
  for (const std::string& item : items) bytes += Number(at += static_cast<uint32_t>(item.size()));
  for (const std::string& item : items) bytes += item;
  return bytes;
}

Scanned ScanIt(const std::string& bytes, const LitDataOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanLitData(shard, options, on, report);
  });
}

TEST(LitData, gives_items_and_their_fields) {
  const std::string bytes = Chunk({Item({"jpeg", "7"}), Item({"", ""}), Item({"x", "yy"})});
  const Scanned items = ScanIt(bytes);
  ASSERT_TRUE(items.status.ok()) << items.status.ToString();
  ASSERT_EQ(items.records.size(), 3U);
  EXPECT_EQ(items.records[0].fields[0].name, "item");
  std::vector<ByteView> values;
  const ByteRange range = items.records[2].range;
  const std::string item = bytes.substr(range.offset, range.size());
  ASSERT_TRUE(OpenLitDataItem(AsBytes(item), 2, &values).ok());
  EXPECT_EQ(AsText(values[1]), "yy");
  EXPECT_FALSE(OpenLitDataItem(AsBytes(item), 3, &values).ok());
  EXPECT_FALSE(OpenLitDataItem(AsBytes(item), 1, &values).ok());
  EXPECT_FALSE(OpenLitDataItem(AsBytes(item), SIZE_MAX, &values).ok());
  const Scanned fields = ScanIt(bytes, {.fields = {"image", "label"}});
  ASSERT_TRUE(fields.status.ok()) << fields.status.ToString();
  const FoundField& image = fields.records[0].fields[0];
  EXPECT_EQ(image.name, "image");
  EXPECT_EQ(bytes.substr(image.range.offset, image.bytes), "jpeg");
  EXPECT_FALSE(ScanIt(bytes, {.fields = {"a", "b", "c"}}).status.ok());
}

TEST(LitData, that_is_damaged_is_an_error) {
  const std::string bytes = Chunk({Item({"jpeg", "7"}), Item({"x", "yy"})});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ScanIt(bytes.substr(0, size)).status.code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(ScanIt(bytes + "x").status.ok());
  for (const size_t at : {0, 4, 8, 12}) {
    EXPECT_FALSE(ScanIt(Replaced(bytes, at, Number(UINT32_MAX))).status.ok()) << at;
    EXPECT_FALSE(ScanIt(Replaced(bytes, at, Number<uint32_t>(0))).status.ok()) << at;
  }
  EXPECT_FALSE(ScanIt(bytes, {.max_item_bytes = 5}).status.ok());
  EXPECT_FALSE(ScanIt(bytes, {.max_items = 1}).status.ok());
}

TEST(LitDataIndex, names_the_chunks) {
  const auto index = ParseLitDataIndex(
      R"({"chunks":[{"chunk_bytes":90,"chunk_size":3,"dim":null,"filename":"chunk-0-0.bin"},)"
      R"({"chunk_bytes":80,"chunk_size":2,"dim":40,"filename":"chunk-0-1.bin"}],)"
      R"("config":{"compression":null,"data_format":["jpeg","int"],)"
      R"("item_loader":"TokensLoader"}})");
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  EXPECT_THAT(index->fields, ElementsAre("jpeg", "int"));
  EXPECT_EQ(index->item_loader, "TokensLoader");
  EXPECT_EQ(index->chunks[0].items, 3U);
  EXPECT_FALSE(index->chunks[0].tokens);
  EXPECT_EQ(index->chunks[1].tokens, 40U);
  for (const char* bad :
       {"", "{}", "[]", R"({"chunks":{},"config":{}})", R"({"chunks":[1],"config":{}})",
        R"({"chunks":[{"chunk_bytes":90,"chunk_size":3,"filename":"../x"}],"config":{}})",
        R"({"chunks":[{"chunk_bytes":-1,"chunk_size":3,"filename":"x"}],"config":{}})",
        R"({"chunks":[],"config":{"data_format":[1]}})"}) {
    EXPECT_EQ(ParseLitDataIndex(bad).code(), Code::kDataLoss) << bad;
  }
}

}  // namespace
}  // namespace forebay::format
