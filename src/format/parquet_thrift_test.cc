#include "format/parquet_thrift.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/crc32.h"
#include "format/parquet.h"

namespace forebay::format {
namespace {

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string Zigzag(int64_t value) {
  return Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

struct Page {
  int64_t type = 0;
  int64_t uncompressed = -1;  // as many as there are
  int64_t values = 3;
  std::string body = "twelve bytes";
  bool crc = false;
  std::string more = "";  // fields of the header
};

// i32 fields 1 to 4 one after the other, then the struct of its type.
std::string Encoded(const Page& page) {
  const auto size = static_cast<int64_t>(page.body.size());
  std::string out = "\x15" + Zigzag(page.type) + "\x15" +
                    Zigzag(page.uncompressed < 0 ? size : page.uncompressed) + "\x15" +
                    Zigzag(size);
  int field = 3;
  if (page.crc) {
    out += "\x15" + Zigzag(static_cast<int32_t>(Crc32(AsBytes(page.body))));
    field = 4;
  }
  const int of_type = page.type == 0 ? 5 : page.type == 2 ? 7 : 8;
  out += static_cast<char>((of_type - field) << 4 | 0xc);
  out += "\x15" + Zigzag(page.values) + std::string(1, '\0');
  return out + page.more + std::string(1, '\0') + page.body;
}

Result<std::vector<ParquetPageHead>> Walk(const std::string& bytes,
                                          std::optional<uint64_t> entries) {
  return WalkParquetPages(AsBytes(bytes), entries, {}, {"a.parquet", 100});
}

TEST(ParquetPages, are_found_until_their_values_are_there) {
  const std::string bytes = Encoded({.type = 2, .values = 50}) + Encoded({.values = 4}) +
                            Encoded({.type = 3, .values = 5, .body = "", .crc = true});
  const auto pages = Walk(bytes, 9);
  ASSERT_TRUE(pages.ok()) << pages.status().ToString();
  ASSERT_EQ(pages->size(), 3U);
  EXPECT_FALSE((*pages)[0].is_data());
  EXPECT_EQ((*pages)[1].entries, 4U);
  EXPECT_EQ((*pages)[1].bytes, 12U);
  EXPECT_EQ((*pages)[2].offset + (*pages)[2].head_bytes, bytes.size());
  const auto all = Walk(bytes, std::nullopt);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 3U);
}

TEST(ParquetPages, that_are_cut_anywhere_are_refused) {
  const std::string bytes = Encoded({.values = 4}) + Encoded({.values = 5, .crc = true});
  for (size_t end = 0; end < bytes.size(); ++end) {
    EXPECT_EQ(Walk(bytes.substr(0, end), 9).code(), Code::kDataLoss) << end;
  }
}

TEST(ParquetPages, whose_bytes_are_not_those_of_their_checksum_are_refused_with_their_offset) {
  std::string bytes = Encoded({.values = 4}) + Encoded({.values = 5, .crc = true});
  const size_t second = Encoded({.values = 4}).size();
  bytes.back() ^= 1;
  const auto pages = Walk(bytes, 9);
  ASSERT_EQ(pages.code(), Code::kDataLoss);
  EXPECT_EQ(pages.status().detail().offset, static_cast<int64_t>(100 + second));
}

TEST(ParquetPages, that_claim_too_much_are_refused) {
  for (const int64_t bytes : {int64_t{65} << 20, int64_t{2} << 30, (int64_t{1} << 31) - 1}) {
    EXPECT_EQ(Walk(Encoded({.uncompressed = bytes}), 3).code(), Code::kDataLoss) << bytes;
  }
  EXPECT_TRUE(Walk(Encoded({.uncompressed = int64_t{64} << 20}), 3).ok());
  EXPECT_EQ(Walk(Encoded({.values = 4}), 3).code(), Code::kDataLoss);
  EXPECT_EQ(Walk(Encoded({.values = -1}), 3).code(), Code::kDataLoss);
  EXPECT_EQ(Walk(Encoded({}) + std::string(200, 'x'), 3).code(), Code::kDataLoss);
  EXPECT_EQ(Walk(Encoded({.type = 2}) + Encoded({.type = 2}) + Encoded({}), 3).code(),
            Code::kDataLoss);
}

TEST(ParquetPages, of_a_few_bytes_that_claim_gigabytes_of_values_are_refused) {
  constexpr int64_t kValues = (int64_t{1} << 31) - 1;
  ParquetChunk chunk{.column = {.stored = ParquetColumn::Stored::kInt64, .value_bytes = 8},
                     .entries = kValues};
  TableValues values;
  const std::string page = Encoded({.values = kValues});
  const Status status = DecodeParquet(chunk, kValues, AsBytes(page), {"", 5}, &values);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(values.bytes(), 0U);
}

TEST(ParquetPages, may_have_fields_that_nobody_knows) {
  // A list of two strings in field 20, a map, a struct in a struct, an extension.
  const std::string more = std::string("\xc9", 1) + "\x28\x01x\x02yz" + "\x1b" + Varint(1) +
                           "\x58" + Zigzag(3) + "\x01q" + "\x1c\x1c" + std::string(2, '\0');
  const auto pages = Walk(Encoded({.more = more}), 3);
  EXPECT_TRUE(pages.ok()) << pages.status().ToString();
}

TEST(ParquetPages, have_fields_of_16_bits) {
  const auto with = [](int64_t id) {  // and a field whose number is told by what is added to it
    const std::string more = "\x05" + Zigzag(id) + Zigzag(1) + "\x95" + Zigzag(1);
    return Walk(Encoded({.more = more}), 3).code();
  };
  EXPECT_EQ(with(300), Code::kOk);
  for (const int64_t id : {int64_t{INT16_MAX}, int64_t{INT16_MAX} + 1, INT64_MAX, INT64_MAX - 8,
                           int64_t{INT16_MIN} - 1, INT64_MIN}) {
    EXPECT_EQ(with(id), Code::kDataLoss) << id;
  }
}

TEST(ParquetPages, nested_without_an_end_are_refused) {
  const std::string deep(100'000, '\x1c');
  EXPECT_EQ(Walk(Encoded({.more = deep}), 3).code(), Code::kDataLoss);
  EXPECT_EQ(CheckParquetFooter(AsBytes("\x3c" + deep), {}, {}).code(), Code::kDataLoss);
}

// Field 2 is the list of the schema's elements; of each field 5 says how many children it has.
std::string Schema(const std::vector<int>& children) {
  std::string out = "\x29\xfc" + Varint(children.size());
  for (const int count : children) {
    if (count > 0) out += "\x55" + Zigzag(count);
    out += '\0';
  }
  return out + '\0';
}

TEST(ParquetFooter, of_a_schema_that_is_deeper_than_anyone_needs_is_refused) {
  EXPECT_TRUE(CheckParquetFooter(AsBytes(Schema({2, 1, 0, 3, 0, 0, 0})), {}, {}).ok());
  std::vector<int> deep(70, 1);
  deep.push_back(0);
  EXPECT_EQ(CheckParquetFooter(AsBytes(Schema(deep)), {}, {}).code(), Code::kDataLoss);
  std::vector<int> wide = {5000};
  wide.insert(wide.end(), 5000, 0);
  EXPECT_TRUE(CheckParquetFooter(AsBytes(Schema(wide)), {}, {}).ok());
}

TEST(ParquetFooter, whose_list_is_longer_than_the_footer_is_refused) {
  const std::string bytes = "\x29\xfc" + Varint(900'000);
  EXPECT_EQ(CheckParquetFooter(AsBytes(bytes), {}, {}).code(), Code::kDataLoss);
}

ParquetGroup SomeGroup() {
  using Stored = ParquetColumn::Stored;
  ParquetGroup group{.rows = 100};
  group.chunks.push_back({.column = {.stored = Stored::kInt32, .value_bytes = 2},
                          .codec = 6,
                          .entries = 100,
                          .uncompressed = 999,
                          .range = {10, 500},
                          .pages = {{{40, 90}, 0}, {{90, 91}, 3}, {{91, 500}, 99}}});
  group.chunks.push_back(
      {.column = {.stored = Stored::kBytes, .max_definition = 3, .max_repetition = 0},
       .entries = 100,
       .range = {500, 501}});
  return group;
}

TEST(ParquetGroup, comes_back_as_it_was_packed) {
  const ParquetGroup group = SomeGroup();
  const auto back = UnpackParquetGroup(PackParquetGroup(group), {{10, 500}, {500, 501}});
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->rows, group.rows);
  EXPECT_EQ(back->chunks, group.chunks);
}

TEST(ParquetGroup, that_is_damaged_is_refused_or_stays_within_its_bounds) {
  const std::string packed = PackParquetGroup(SomeGroup());
  const std::vector<ByteRange> ranges = {{10, 500}, {500, 501}};
  for (size_t end = 0; end < packed.size(); ++end) {
    EXPECT_FALSE(UnpackParquetGroup(packed.substr(0, end), ranges).ok()) << end;
  }
  EXPECT_FALSE(UnpackParquetGroup(packed + '\0', ranges).ok());
  EXPECT_FALSE(UnpackParquetGroup(packed, {{10, 500}}).ok());
  for (size_t at = 0; at < packed.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string damaged = packed;
      damaged[at] = static_cast<char>(value);
      const auto group = UnpackParquetGroup(damaged, ranges);
      if (!group.ok()) continue;
      for (size_t i = 0; i < ranges.size(); ++i) {
        for (const TablePage& page : group->chunks[i].pages) {
          EXPECT_TRUE(ranges[i].Contains(page.range)) << at << " " << value;
          EXPECT_LT(page.first_row, group->rows);
        }
      }
    }
  }
}

}  // namespace
}  // namespace forebay::format
