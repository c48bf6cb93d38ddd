#include "feed/table_cut.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace forebay::feed {
namespace {

using format::ParquetChunk;

// A chunk at `offset` of eight-byte values, `dictionary` bytes, then pages of these rows, a byte
// for each row.
ParquetChunk Chunk(uint64_t offset, uint64_t rows, const std::vector<uint64_t>& page_rows,
                   uint64_t dictionary = 0) {
  ParquetChunk chunk{.column = {.stored = format::ParquetColumn::Stored::kInt64, .value_bytes = 8},
                     .entries = rows,
                     .range = {offset, offset + dictionary + rows}};
  uint64_t first = 0;
  for (const uint64_t count : page_rows) {
    const uint64_t at = offset + dictionary + first;
    chunk.pages.push_back({{at, at + count}, first});
    first += count;
  }
  return chunk;
}

void CheckCovers(const std::vector<TablePiece>& pieces, uint64_t rows,
                 const std::vector<ParquetChunk>& chunks) {
  uint64_t next = 0;
  for (const TablePiece& piece : pieces) {
    EXPECT_EQ(piece.first_row, next);
    EXPECT_GT(piece.rows, 0U);
    next += piece.rows;
    ASSERT_EQ(piece.reads.size(), chunks.size());
    for (const TableRead& read : piece.reads) {
      EXPECT_LE(read.first_row, piece.first_row);
      EXPECT_GE(read.first_row + read.rows, piece.first_row + piece.rows);
      for (const ByteRange& range : read.ranges) {
        EXPECT_TRUE(std::ranges::any_of(
            piece.extents, [&](const Extent& extent) { return extent.range.Contains(range); }));
      }
    }
  }
  EXPECT_EQ(next, rows);
}

TEST(TableCut, a_group_whose_pages_are_unknown_is_one_piece) {
  const std::vector<ParquetChunk> chunks = {Chunk(0, 1000, {}), Chunk(5000, 1000, {500, 500})};
  const auto pieces = CutTable(3, 7, 1000, chunks, {.aligned_bytes = 10, .unaligned_bytes = 10});
  ASSERT_EQ(pieces.size(), 1U);
  CheckCovers(pieces, 1000, chunks);
  EXPECT_EQ(pieces[0].extents, (std::vector<Extent>{{7, {0, 1000}}, {7, {5000, 6000}}}));
}

TEST(TableCut, pages_that_begin_together_are_each_in_one_piece) {
  const std::vector<ParquetChunk> chunks = {Chunk(0, 1000, {250, 250, 250, 250}, 30),
                                            Chunk(5000, 1000, {250, 500, 250})};
  const auto pieces = CutTable(0, 0, 1000, chunks, {.aligned_bytes = 16 * 250});
  ASSERT_EQ(pieces.size(), 3U);
  CheckCovers(pieces, 1000, chunks);
  EXPECT_EQ(pieces[1].first_row, 250U);
  EXPECT_EQ(pieces[1].rows, 500U);
  // The dictionary, then the pages.
  EXPECT_EQ(pieces[1].reads[0].ranges, (std::vector<ByteRange>{{0, 30}, {280, 780}}));
  EXPECT_EQ(pieces[1].reads[1].ranges, (std::vector<ByteRange>{{5250, 5750}}));
  uint64_t read = 0;
  for (const TablePiece& piece : pieces) read += piece.reads[1].ranges[0].size();
  EXPECT_EQ(read, 1000U);
}

TEST(TableCut, pages_that_do_not_begin_together_make_larger_pieces_that_share_some) {
  const std::vector<ParquetChunk> chunks = {Chunk(0, 1000, {300, 300, 300, 100}),
                                            Chunk(5000, 1000, {190, 200, 210, 200, 200})};
  const TableCutOptions options{.aligned_bytes = 16, .unaligned_bytes = 16 * 300};
  const auto pieces = CutTable(0, 0, 1000, chunks, options);
  ASSERT_GT(pieces.size(), 1U);
  CheckCovers(pieces, 1000, chunks);
}

TEST(TableCut, small_gaps_are_read_through_and_large_ones_are_not) {
  const std::vector<ParquetChunk> chunks = {Chunk(0, 1000, {}), Chunk(1010, 1000, {}),
                                            Chunk(4000, 1000, {})};
  const auto pieces = CutTable(0, 0, 1000, chunks);
  EXPECT_EQ(pieces[0].extents, (std::vector<Extent>{{0, {0, 2010}}, {0, {4000, 5000}}}));
}

}  // namespace
}  // namespace forebay::feed
