#include "feed/token_catalog.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/random.h"
#include "catalog/records_writer.h"

namespace forebay::feed {
namespace {

using catalog::RecordEntry;
using catalog::RecordsCatalog;

constexpr uint64_t kItem = 2;  // bytes of a token
constexpr uint64_t kHead = 1024;

using Lengths = std::vector<std::vector<uint64_t>>;  // of the documents of each shard, in tokens

std::shared_ptr<const RecordsCatalog> Documents(const Lengths& shards,
                                                const RecordsCatalog* earlier = nullptr) {
  catalog::RecordsWriter writer("file:///data/", "tokens", "");
  if (earlier != nullptr) {
    EXPECT_TRUE(writer.Continue(*earlier).ok());
  }
  const uint64_t known = earlier == nullptr ? 0 : earlier->shard_count();
  for (size_t s = 0; s < shards.size(); ++s) {
    const uint64_t tokens = std::accumulate(shards[s].begin(), shards[s].end(), uint64_t{0});
    EXPECT_TRUE(writer
                    .AddShard({fmt::format("{:04}.bin", known + s), kHead + tokens * kItem,
                               fmt::format("e{}", s), ""})
                    .ok());
    uint64_t at = kHead;
    for (const uint64_t length : shards[s]) {
      const ByteRange range{at, at + length * kItem};
      at = range.end;
      EXPECT_TRUE(writer
                      .Add({.key = "",
                            .range = range,
                            .fields = {{.name = "tokens",
                                        .range = range,
                                        .bytes = range.size(),
                                        .dtype = "uint16"}}})
                      .ok());
    }
  }
  auto opened = RecordsCatalog::Open(catalog::BytesInMemory(*writer.Finish()));
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  return *opened;
}

Lengths SomeLengths(uint64_t seed, size_t shards) {
  Random random(seed);
  Lengths all(shards);
  for (auto& lengths : all) {
    lengths.resize(random.NextBelow(400));
    for (uint64_t& length : lengths) length = 1 + random.NextBelow(random.NextBelow(9) ? 90 : 500);
  }
  return all;
}

TEST(TokenCatalog, windows_lie_one_stride_apart_within_each_file) {
  const auto catalog = Documents({{100}, {}, {3}, {40, 50}});
  const auto seen = BySamples(catalog, {TokensOp{.length = 33, .stride = 32}});
  ASSERT_TRUE(seen.ok()) << seen.status().ToString();
  ASSERT_EQ((*seen)->count(), 5u);  // 0, 32, 64 of the first; 0, 32 of the last; none of 3 tokens
  const std::vector<std::pair<uint32_t, uint64_t>> expected = {
      {0, 0}, {0, 32}, {0, 64}, {3, 0}, {3, 32}};
  for (uint64_t i = 0; i < 5; ++i) {
    const RecordEntry entry = *(*seen)->At(i);
    EXPECT_EQ(entry.shard, expected[i].first);
    const uint64_t first = kHead + expected[i].second * kItem;
    EXPECT_EQ(entry.range, (ByteRange{first, first + 33 * kItem}));
    ASSERT_EQ(entry.fields.size(), 1u);
    EXPECT_EQ(entry.fields[0].range, entry.range);
  }
  EXPECT_EQ((*seen)->content_hash(), catalog->content_hash());
}

TEST(TokenCatalog, samples_keep_their_numbers_when_files_come_behind) {
  const auto first = Documents({{70, 3}, {64}});
  const auto grown = Documents({{33}, {200}}, first.get());
  const std::vector<Op> op = {TokensOp{.length = 32}};
  const auto before = *BySamples(first, op);
  const auto after = *BySamples(grown, op);
  ASSERT_EQ(after->generations().size(), 2u);
  EXPECT_EQ(after->generations()[0].samples, before->generations()[0].samples);
  EXPECT_EQ(after->generations()[0].content_hash, before->generations()[0].content_hash);
  EXPECT_EQ(after->count(), before->count() + 1 + 6);
  for (uint64_t i = 0; i < before->count(); ++i) EXPECT_EQ(*before->At(i), *after->At(i));
}

TEST(TokenCatalog, packed_rows_keep_their_numbers_when_longer_documents_come_behind) {
  Lengths short_ones(2, std::vector<uint64_t>(3000, 5));
  const auto first = Documents(short_ones);
  const auto grown = Documents({std::vector<uint64_t>(20, 90'000)}, first.get());
  const std::vector<Op> op = {PackTokensOp{.length = 512}};
  const auto before = *BySamples(first, op);
  const auto after = *BySamples(grown, op);
  EXPECT_GT(after->count(), before->count());
  for (uint64_t i = 0; i < before->count(); ++i) ASSERT_EQ(*before->At(i), *after->At(i)) << i;
}

TEST(TokenCatalog, every_token_is_in_one_packed_row_and_no_document_is_cut_that_fits) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Lengths lengths = SomeLengths(seed, 5);
    const auto catalog = Documents(lengths);
    constexpr uint64_t kRow = 128;
    const auto seen = *BySamples(catalog, {PackTokensOp{.length = kRow, .window = 37}});
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> pieces;  // (shard, offset) -> end
    for (uint64_t i = 0; i < seen->count(); ++i) {
      const RecordEntry entry = *seen->At(i);
      uint64_t tokens = 0;
      EXPECT_LE(entry.fields.size(), PiecesMost(*seen));
      EXPECT_LE(entry.range.size(), seen->range_max());
      for (const catalog::RecordField& piece : entry.fields) {
        tokens += piece.bytes / kItem;
        EXPECT_TRUE(entry.range.Contains(piece.range));
        EXPECT_TRUE(pieces.try_emplace({entry.shard, piece.range.offset}, piece.range.end).second);
      }
      EXPECT_LE(tokens, kRow);
      EXPECT_EQ(entry, *seen->At(i));  // whatever was asked for before
    }
    for (uint32_t shard = 0; shard < lengths.size(); ++shard) {
      uint64_t at = kHead;
      for (const uint64_t length : lengths[shard]) {
        const uint64_t end = at + length * kItem;
        for (uint64_t piece = at; piece < end;) {
          const auto it = pieces.find({shard, piece});
          ASSERT_NE(it, pieces.end()) << "shard " << shard << " at " << piece;
          EXPECT_LE(it->second, end);
          EXPECT_TRUE(length > kRow || it->second == end) << "cut";
          piece = it->second;
          pieces.erase(it);
        }
        at = end;
      }
    }
    EXPECT_TRUE(pieces.empty());
  }
}

TEST(TokenCatalog, rows_are_the_same_again_and_the_seed_moves_them_within_their_window) {
  const auto catalog = Documents(SomeLengths(3, 2));
  const auto rows = [&](uint64_t seed) {
    const auto seen =
        *BySamples(catalog, {PackTokensOp{.length = 256, .window = 50, .seed = seed}});
    std::vector<uint64_t> first;
    for (uint64_t i = 0; i < seen->count(); ++i)
      first.push_back(seen->At(i)->fields[0].range.offset);
    return first;
  };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
  auto one = rows(1);
  auto two = rows(2);
  std::ranges::sort(one);
  std::ranges::sort(two);
  EXPECT_EQ(one, two);
}

TEST(TokenCatalog, says_what_does_not_fit) {
  const auto tokens = Documents({{10}, {20}});
  EXPECT_EQ(BySamples(tokens, {TokensOp{.length = 21}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(BySamples(tokens, {SelectOp{{"tokens"}}, TokensOp{.length = 4}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(BySamples(tokens, {TokensOp{.length = 0}}).code(), Code::kInvalidArgument);
  EXPECT_EQ((*BySamples(tokens, {}))->count(), 2u);  // the documents

  catalog::RecordsWriter writer("file:///data/", "tar", "");
  ASSERT_TRUE(writer.AddShard({"a.tar", 100, "e", ""}).ok());
  ASSERT_TRUE(writer.Add({"", {0, 8}, {{"tokens", {0, 8}, 8}}}).ok());
  const auto tar = *RecordsCatalog::Open(catalog::BytesInMemory(*writer.Finish()));
  EXPECT_EQ(BySamples(tar, {TokensOp{.length = 2}}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::feed
