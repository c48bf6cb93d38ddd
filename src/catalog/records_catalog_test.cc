#include "catalog/records_catalog.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "catalog/records_writer.h"

namespace forebay::catalog {
namespace {

using format::FoundField;
using format::FoundRecord;
using ::testing::HasSubstr;

struct MadeShard {
  FileEntry entry;
  std::vector<FoundRecord> records;
};

// Of all kinds: one field or several, with checksums and without, gaps, framing, empty fields.
MadeShard SomeShard(Random& random, size_t number, size_t records) {
  MadeShard shard;
  uint64_t at = random.NextBelow(2) * 512;
  for (size_t i = 0; i < records; ++i) {
    FoundRecord record;
    record.key = random.NextBelow(9) == 0 ? "" : fmt::format("{:04}/{}", number, i);
    record.range.offset = at;
    const size_t fields = random.NextBelow(4);
    for (size_t f = 0; f < fields; ++f) {
      FoundField field;
      field.name = fmt::format("f{}", (i + f) % 5);
      at += random.NextBelow(600);
      field.range = {at, at + random.NextBelow(100'000)};
      field.bytes = field.range.size() + random.NextBelow(9);
      if (random.NextBelow(2) == 0) field.crc32c = static_cast<uint32_t>(random.Next());
      at = field.range.end;
      record.fields.push_back(field);
    }
    at += random.NextBelow(3) * 16;
    record.range.end = at;
    if (random.NextBelow(8) == 0) at += uint64_t{1} << 33;
    if (!record.fields.empty()) {
      record.fields[0].dtype = "float32";
      record.fields[0].shape = {static_cast<int64_t>(random.NextBelow(2) + 1)};
    }
    shard.records.push_back(std::move(record));
  }
  shard.entry = {fmt::format("shard-{:05}.tar", number), at + 1024, fmt::format("etag{}", number),
                 ""};
  return shard;
}

std::vector<MadeShard> SomeShards(uint64_t seed, size_t shards) {
  Random random(seed);
  std::vector<MadeShard> made;
  made.reserve(shards);
  for (size_t i = 0; i < shards; ++i) made.push_back(SomeShard(random, i, random.NextBelow(900)));
  return made;
}

void AddAll(RecordsWriter& writer, const std::vector<MadeShard>& shards) {
  for (const MadeShard& shard : shards) {
    ASSERT_TRUE(writer.AddShard(shard.entry).ok());
    for (const FoundRecord& record : shard.records) ASSERT_TRUE(writer.Add(record).ok());
  }
}

std::shared_ptr<const RecordsCatalog> Opened(std::vector<std::byte> bytes) {
  auto catalog = RecordsCatalog::Open(BytesInMemory(std::move(bytes)));
  EXPECT_TRUE(catalog.ok()) << catalog.status().ToString();
  return *std::move(catalog);
}

std::vector<std::byte> Written(const std::vector<MadeShard>& shards) {
  RecordsWriter writer("s3://bucket/shards/", "tar", "");
  AddAll(writer, shards);
  auto bytes = writer.Finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

void ExpectHolds(const RecordsCatalog& catalog, const std::vector<MadeShard>& shards) {
  uint64_t number = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    const auto shard = catalog.ShardAt(s);
    ASSERT_TRUE(shard.ok());
    EXPECT_EQ(shard->key, shards[s].entry.key);
    EXPECT_EQ(shard->size, shards[s].entry.size);
    EXPECT_EQ(shard->etag, shards[s].entry.etag);
    for (const FoundRecord& record : shards[s].records) {
      const auto entry = catalog.At(number);
      ASSERT_TRUE(entry.ok()) << entry.status().ToString();
      EXPECT_EQ(entry->shard, s);
      EXPECT_EQ(entry->range, record.range);
      ASSERT_EQ(entry->fields.size(), record.fields.size());
      for (size_t f = 0; f < record.fields.size(); ++f) {
        EXPECT_EQ(catalog.fields()[entry->fields[f].field].name, record.fields[f].name);
        EXPECT_EQ(entry->fields[f].range, record.fields[f].range);
        EXPECT_EQ(entry->fields[f].bytes, record.fields[f].bytes);
        EXPECT_EQ(entry->fields[f].crc32c, record.fields[f].crc32c);
      }
      const auto key = catalog.KeyOf(number);
      ASSERT_TRUE(key.ok());
      EXPECT_EQ(*key, record.key);
      ++number;
    }
  }
  EXPECT_EQ(catalog.count(), number);
}

// Ranges within blocks and across them, and across generations.
void ExpectReadsInARow(const RecordsCatalog& catalog) {
  Random random(catalog.count());
  for (int k = 0; k < 40; ++k) {
    const uint64_t first = random.NextBelow(catalog.count());
    const uint64_t end = k == 0 ? first : first + 1 + random.NextBelow(catalog.count() - first);
    RecordTable records;
    ASSERT_TRUE(catalog.Read(first, end, records).ok());
    ASSERT_EQ(records.size(), end - first);
    for (uint64_t i = first; i < end; ++i) {
      const RecordView found = records[i - first];
      const RecordEntry one = *catalog.At(i);
      ASSERT_EQ(found.shard, one.shard);
      ASSERT_EQ(found.range, one.range);
      ASSERT_TRUE(std::ranges::equal(found.fields, one.fields));
    }
  }
}

TEST(RecordsCatalog, says_of_every_record_what_was_written) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto shards = SomeShards(seed, 7);
    const auto catalog = Opened(Written(shards));
    ExpectHolds(*catalog, shards);
    ExpectReadsInARow(*catalog);
    EXPECT_EQ(catalog->format(), "tar");
    EXPECT_EQ(catalog->shard_count(), 7U);
  }
}

TEST(RecordsCatalog, counts_what_fields_there_are_and_bounds_their_bytes) {
  const auto shards = SomeShards(3, 5);
  const auto catalog = Opened(Written(shards));
  std::vector<uint64_t> sizes;
  uint64_t most = 0, total = 0;
  for (const MadeShard& shard : shards) {
    for (const FoundRecord& record : shard.records) {
      uint64_t bytes = 0;
      for (const FoundField& field : record.fields) bytes += field.bytes;
      sizes.push_back(bytes);
      total += bytes;
      most = std::max(most, record.range.size());
    }
  }
  std::ranges::sort(sizes, std::greater<>());
  EXPECT_EQ(catalog->total_bytes(), total);
  EXPECT_EQ(catalog->range_max(), most);
  uint64_t sum = 0;
  for (size_t n = 1; n <= sizes.size(); ++n) {
    sum += sizes[n - 1];
    EXPECT_GE(catalog->LargestBytes(n), sum);
  }
  uint64_t with_f0 = 0;
  for (const MadeShard& shard : shards) {
    for (const FoundRecord& record : shard.records) {
      for (const FoundField& field : record.fields) with_f0 += field.name == "f0" ? 1 : 0;
    }
  }
  const auto f0 = std::ranges::find(catalog->fields(), "f0", &FieldInfo::name);
  ASSERT_NE(f0, catalog->fields().end());
  EXPECT_EQ(f0->records, with_f0);
}

FoundField Typed(uint64_t at, const char* name, const char* dtype, std::vector<int64_t> shape) {
  return {name, {at, at + 4}, 4, {}, dtype, std::move(shape)};
}

TEST(RecordsCatalog, says_of_a_field_what_all_its_values_are) {
  RecordsWriter writer("s3://bucket/", "npy", "");
  ASSERT_TRUE(writer.AddShard({"a.npy", 100, "", ""}).ok());
  ASSERT_TRUE(
      writer.Add({"", {0, 8}, {Typed(0, "same", "int32", {}), Typed(4, "mixed", "int32", {1})}})
          .ok());
  ASSERT_TRUE(
      writer.Add({"", {8, 16}, {Typed(8, "same", "int32", {}), Typed(12, "mixed", "int32", {})}})
          .ok());
  const auto catalog = Opened(*writer.Finish());
  EXPECT_EQ(catalog->fields()[0].dtype, "int32");
  EXPECT_EQ(catalog->fields()[1].dtype, "");
  RecordsWriter again("s3://bucket/", "npy", "");
  ASSERT_TRUE(again.Continue(*catalog).ok());
  ASSERT_TRUE(again.AddShard({"b.npy", 100, "", ""}).ok());
  ASSERT_TRUE(
      again.Add({"", {0, 8}, {Typed(0, "same", "int32", {}), Typed(4, "mixed", "int8", {4})}})
          .ok());
  EXPECT_EQ(Opened(*again.Finish())->fields()[0].dtype, "int32");
}

TEST(RecordsCatalog, takes_no_record_by_which_past_batches_would_come_as_other_arrays) {
  RecordsWriter writer("s3://bucket/", "npy", "");
  ASSERT_TRUE(writer.AddShard({"a.npy", 100, "", ""}).ok());
  ASSERT_TRUE(
      writer.Add({"", {0, 8}, {Typed(0, "all", "int32", {}), Typed(4, "some", "int32", {})}}).ok());
  ASSERT_TRUE(writer.Add({"", {8, 12}, {Typed(8, "all", "int32", {})}}).ok());
  const auto catalog = Opened(*writer.Finish());
  RecordsWriter more("s3://bucket/", "npy", "");
  ASSERT_TRUE(more.Continue(*catalog).ok());
  ASSERT_TRUE(more.AddShard({"b.npy", 100, "", ""}).ok());
  const auto refused = [&](std::vector<FoundField> fields) {
    const Status status = more.Add({"7", {8, 16}, std::move(fields)});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refused({Typed(8, "some", "int32", {})}),
              HasSubstr("b.npy: record '7' at 8 lacks 'all', which every earlier record has"));
  EXPECT_THAT(refused({Typed(8, "all", "float32", {})}),
              HasSubstr("another type or shape of 'all'"));
  EXPECT_THAT(refused({Typed(8, "all", "int32", {}), Typed(12, "some", "int32", {2})}),
              HasSubstr("another type or shape of 'some'"));
  EXPECT_TRUE(
      more.Add({"", {0, 8}, {Typed(0, "all", "int32", {}), Typed(4, "new", "int8", {})}}).ok());
}

TEST(RecordsCatalog, grows_by_generations_without_altering_the_past) {
  auto first = SomeShards(4, 3);
  first.push_back({{"shard-00003.tar", 1024, "empty", ""}, {}});
  const auto before = Opened(Written(first));
  auto second = SomeShards(5, 2);
  second[0].entry.key = "shard-00010.tar";
  second[1].entry.key = "shard-00011.tar";
  RecordsWriter writer("s3://bucket/shards/", "tar", "");
  ASSERT_TRUE(writer.Continue(*before).ok());
  AddAll(writer, second);
  auto grown_bytes = writer.Finish();
  ASSERT_TRUE(grown_bytes.ok());
  const auto grown = Opened(*std::move(grown_bytes));
  auto all = first;
  all.insert(all.end(), second.begin(), second.end());
  ExpectHolds(*grown, all);
  ExpectReadsInARow(*grown);
  ASSERT_EQ(grown->generations().size(), 2U);
  EXPECT_EQ(grown->generations()[0].content_hash, before->content_hash());
  EXPECT_EQ(grown->mean_bytes(), before->mean_bytes());
  EXPECT_EQ(before->mean_bytes(), before->total_bytes() / before->count());
  EXPECT_GT(grown->total_bytes(), before->total_bytes());
  EXPECT_NE(grown->content_hash(), before->content_hash());
  // And once more, from what has grown.
  RecordsWriter again("s3://bucket/shards/", "tar", "");
  ASSERT_TRUE(again.Continue(*grown).ok());
  EXPECT_EQ(again.added(), 0U);
}

TEST(RecordsCatalog, has_another_id_when_a_shard_or_its_format_is_another) {
  auto shards = SomeShards(6, 2);
  const std::string id = Opened(Written(shards))->content_hash();
  shards[1].entry.etag = "other";
  EXPECT_NE(Opened(Written(shards))->content_hash(), id);
  shards[1].entry.etag = "etag1";
  EXPECT_EQ(Opened(Written(shards))->content_hash(), id);
  RecordsWriter writer("s3://elsewhere/", "recordio", "multipart=mxnet");
  AddAll(writer, shards);
  EXPECT_NE(Opened(*writer.Finish())->content_hash(), id);
}

TEST(RecordsCatalog, refuses_a_file_with_any_byte_changed_or_cut_off) {
  const std::vector<std::byte> good = Written(SomeShards(7, 2));
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bad = good;
    const size_t at = random.NextBelow(bad.size());
    bad[at] ^= static_cast<std::byte>(1 + random.NextBelow(255));
    const auto catalog = RecordsCatalog::Open(BytesInMemory(std::move(bad)));
    if (!catalog.ok()) continue;
    bool found = false;  // in a block: told when it is looked at
    for (uint64_t i = 0; i < (*catalog)->count() && !found; ++i) {
      found = !(*catalog)->At(i).ok();
    }
    for (uint64_t i = 0; i < (*catalog)->shard_count() && !found; ++i) {
      found = !(*catalog)->ShardAt(i).ok();
    }
    EXPECT_TRUE(found) << "byte " << at;
  }
  for (size_t size = 0; size < good.size(); size += 1 + size / 7) {
    std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(RecordsCatalog::Open(BytesInMemory(std::move(cut))).code(), Code::kDataLoss) << size;
  }
}

TEST(RecordsCatalog, tells_catalogs_of_other_things_apart) {
  const auto of = RecordsCatalog::Open(
      BytesInMemory(std::vector<std::byte>(reinterpret_cast<const std::byte*>("FBFILES\n"),
                                           reinterpret_cast<const std::byte*>("FBFILES\n") + 8)));
  EXPECT_EQ(of.code(), Code::kInvalidArgument);
  EXPECT_NE(of.status().ToString().find("plain objects"), std::string::npos);
}

TEST(RecordsWriter, refuses_records_that_no_scan_finds) {
  RecordsWriter writer("s3://bucket/", "tar", "");
  ASSERT_TRUE(writer.AddShard({"a.tar", 1000, "", ""}).ok());
  ASSERT_TRUE(writer.Add({"a", {0, 100}, {{"jpg", {10, 90}, 80}}}).ok());
  EXPECT_EQ(writer.Add({"b", {50, 150}, {}}).code(), Code::kDataLoss);
  EXPECT_EQ(writer.Add({"c", {900, 1001}, {}}).code(), Code::kDataLoss);
  EXPECT_EQ(writer.Add({"d", {200, 300}, {{"jpg", {290, 310}, 20}}}).code(), Code::kDataLoss);
  RecordsWriter groups("s3://bucket/", "beton", "");  // which may reach into one another
  ASSERT_TRUE(groups.AddShard({"a.beton", 1000, "", ""}).ok());
  ASSERT_TRUE(groups.Add({"a", {10, 100}, {}}).ok());
  EXPECT_TRUE(groups.Add({"b", {50, 150}, {}}).ok());
  EXPECT_EQ(groups.Add({"c", {49, 150}, {}}).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace forebay::catalog
