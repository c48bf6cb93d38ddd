#include "catalog/records_part.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "catalog/records_writer.h"

namespace forebay::catalog {
namespace {

using ::testing::HasSubstr;

struct MadeShard {
  FileEntry entry;
  std::vector<format::FoundRecord> records;
};

// Of which some are empty, and whose fields differ in type and order.
std::vector<MadeShard> SomeShards(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<MadeShard> shards;
  for (size_t s = 0; s < count; ++s) {
    MadeShard shard;
    uint64_t at = 0;
    const uint64_t records = s % 3 == 1 ? 0 : random.NextBelow(1500);
    for (uint64_t i = 0; i < records; ++i) {
      format::FoundRecord record{.key = fmt::format("{}/{}", s, i), .range = {at, at}};
      for (uint64_t f = random.NextBelow(3); f < 4; f += 1 + random.NextBelow(2)) {
        format::FoundField field{.name = fmt::format("f{}", f)};
        field.range = {at, at + random.NextBelow(900)};
        field.bytes = field.range.size();
        field.crc32c = static_cast<uint32_t>(random.Next());
        if (f == 1) field.dtype = "int64";
        if (f == 2) field.dtype = s % 2 == 0 ? "float32" : "int64";
        if (f == 3) field.shape = {static_cast<int64_t>(s % 5)};
        if (f == 3) field.dtype = "float32";
        at = record.range.end = field.range.end;
        record.fields.push_back(std::move(field));
      }
      shard.records.push_back(std::move(record));
    }
    shard.entry = {fmt::format("{:03}.tar", s), at + 10, fmt::format("e{}", s), ""};
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::vector<std::byte> CatalogOf(const std::vector<MadeShard>& shards) {
  RecordsWriter writer("s3://b/d/", "tar", "");
  for (const MadeShard& shard : shards) {
    EXPECT_TRUE(writer.AddShard(shard.entry).ok());
    for (const auto& record : shard.records) EXPECT_TRUE(writer.Add(record).ok());
  }
  if (writer.added() == 0) return {};
  auto bytes = writer.Finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

std::vector<std::byte> PartOf(const std::vector<MadeShard>& shards, uint64_t part, uint64_t parts,
                              const std::string& whole = "w") {
  std::vector<MadeShard> mine;
  std::vector<FileEntry> entries;
  for (size_t i = part; i < shards.size(); i += parts) {
    mine.push_back(shards[i]);
    entries.push_back(shards[i].entry);
  }
  const RecordsPartHead head{.whole = whole,
                             .part = part,
                             .parts = parts,
                             .source_uri = "s3://b/d/",
                             .format = "tar",
                             .format_options = "",
                             .objects = 7};
  return PackRecordsPart(head, entries, CatalogOf(mine));
}

RecordsPart Opened(const std::vector<std::byte>& bytes) {
  auto part = OpenRecordsPart(bytes);
  EXPECT_TRUE(part.ok()) << part.status().ToString();
  return *std::move(part);
}

TEST(RecordsPart, merged_are_the_catalog_of_one_run_byte_for_byte) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto shards = SomeShards(seed, 11);
    const auto whole = CatalogOf(shards);
    for (const uint64_t parts : {1, 2, 3, 5, 20}) {
      std::vector<RecordsPart> opened;
      for (uint64_t i = parts; i-- > 0;) opened.push_back(Opened(PartOf(shards, i, parts)));
      const auto merged = MergeRecords(opened);
      ASSERT_TRUE(merged.ok()) << merged.status().ToString();
      EXPECT_TRUE(*merged == whole) << seed << " " << parts;
    }
  }
}

TEST(RecordsPart, that_is_missing_twice_or_of_another_whole_is_refused) {
  const auto shards = SomeShards(1, 6);
  const auto a = Opened(PartOf(shards, 0, 2)), b = Opened(PartOf(shards, 1, 2));
  EXPECT_TRUE(MergeRecords({a, b}).ok());
  EXPECT_THAT(MergeRecords({b}).status().ToString(), HasSubstr("part 0 of 2 is missing"));
  EXPECT_THAT(MergeRecords({a, b, a}).status().ToString(), HasSubstr("twice"));
  const auto other = Opened(PartOf(shards, 1, 2, "other"));
  EXPECT_THAT(MergeRecords({a, other}).status().ToString(), HasSubstr("not of one whole"));
  EXPECT_EQ(MergeRecords({}).code(), Code::kInvalidArgument);
}

TEST(RecordsPart, damaged_anywhere_is_refused) {
  const std::vector<std::byte> good = PartOf(SomeShards(2, 3), 0, 1);
  for (size_t at = 0; at < good.size(); at += 1 + good.size() / 500) {
    if (at >= 12 && at < 16) continue;  // of no meaning
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{1};
    EXPECT_FALSE(OpenRecordsPart(bad).ok()) << at;
    EXPECT_FALSE(OpenRecordsPart(ByteView(good).first(at)).ok()) << at;
  }
}

}  // namespace
}  // namespace forebay::catalog
