#include "feed/table_cut.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace forebay::feed {
namespace {

using format::TableColumn;

// A column at `offset` of eight-byte values, `dictionary` bytes, then pages of these rows, a byte
// for each row.
TableColumn Column(uint64_t offset, uint64_t rows, const std::vector<uint64_t>& page_rows,
                   uint64_t dictionary = 0) {
  TableColumn column;
  column.layout = {
      .value_bytes = 8, .entries = rows, .ranges = {{offset, offset + dictionary + rows}}};
  uint64_t first = 0;
  for (const uint64_t count : page_rows) {
    const uint64_t at = offset + dictionary + first;
    column.layout.pages.push_back({{at, at + count}, first});
    column.layout.starts.push_back(first);
    first += count;
  }
  return column;
}

void CheckCovers(const std::vector<TablePiece>& pieces, uint64_t rows,
                 const std::vector<TableColumn>& columns) {
  uint64_t next = 0;
  for (const TablePiece& piece : pieces) {
    EXPECT_EQ(piece.first_row, next);
    EXPECT_GT(piece.rows, 0U);
    next += piece.rows;
    ASSERT_EQ(piece.reads.size(), columns.size());
    for (const format::TableRead& read : piece.reads) {
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
  const std::vector<TableColumn> columns = {Column(0, 1000, {}), Column(5000, 1000, {500, 500})};
  const auto pieces = CutTable(3, 7, 1000, columns, {.aligned_bytes = 10, .unaligned_bytes = 10});
  ASSERT_EQ(pieces.size(), 1U);
  CheckCovers(pieces, 1000, columns);
  EXPECT_EQ(pieces[0].extents, (std::vector<Extent>{{7, {0, 1000}}, {7, {5000, 6000}}}));
}

TEST(TableCut, pages_that_begin_together_are_each_in_one_piece) {
  const std::vector<TableColumn> columns = {Column(0, 1000, {250, 250, 250, 250}, 30),
                                            Column(5000, 1000, {250, 500, 250})};
  const auto pieces = CutTable(0, 0, 1000, columns, {.aligned_bytes = 16 * 250});
  ASSERT_EQ(pieces.size(), 3U);
  CheckCovers(pieces, 1000, columns);
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
  const std::vector<TableColumn> columns = {Column(0, 1000, {300, 300, 300, 100}),
                                            Column(5000, 1000, {190, 200, 210, 200, 200})};
  const TableCutOptions options{.aligned_bytes = 16, .unaligned_bytes = 16 * 300};
  const auto pieces = CutTable(0, 0, 1000, columns, options);
  ASSERT_GT(pieces.size(), 1U);
  CheckCovers(pieces, 1000, columns);
}

TEST(TableCut, small_gaps_are_read_through_and_large_ones_are_not) {
  const std::vector<TableColumn> columns = {Column(0, 1000, {}), Column(1010, 1000, {}),
                                            Column(4000, 1000, {})};
  const auto pieces = CutTable(0, 0, 1000, columns);
  EXPECT_EQ(pieces[0].extents, (std::vector<Extent>{{0, {0, 2010}}, {0, {4000, 5000}}}));
}

TEST(TableCut, a_column_of_several_ranges_is_read_by_all_of_them) {
  TableColumn column = Column(1000, 100, {});
  column.layout.ranges.insert(column.layout.ranges.begin(), {10, 20});
  const std::vector<TableColumn> columns = {column};
  const auto pieces = CutTable(0, 0, 100, columns);
  ASSERT_EQ(pieces.size(), 1U);
  CheckCovers(pieces, 100, columns);
  EXPECT_EQ(pieces[0].reads[0].ranges, (std::vector<ByteRange>{{10, 20}, {1000, 1100}}));
  EXPECT_EQ(pieces[0].extents, (std::vector<Extent>{{0, {10, 20}}, {0, {1000, 1100}}}));
}

}  // namespace
}  // namespace forebay::feed
