#include "feed/table_pieces.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace forebay::feed {
namespace {

Status Fill(size_t bytes, std::span<DecodedColumn> out) {
  for (DecodedColumn& column : out) {
    column.values.rows = 1;
    column.values.values.resize(bytes);
  }
  return {};
}

TEST(TablePieces, are_decoded_once_for_all_who_ask) {
  TablePieces pieces(8);
  pieces.set_limit(1 << 20);
  std::atomic<int> decoded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t number = 0; number < 20; ++number) {
        const auto piece = pieces.Get(number, [&](size_t, std::span<DecodedColumn> out) {
          ++decoded;
          return Fill(100, out);
        });
        ASSERT_TRUE(piece.ok());
        for (const DecodedColumn& column : (*piece)->columns) {
          ASSERT_EQ(column.values.values.size(), 100U);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decoded, 20 * 8);
}

TEST(TablePieces, used_longest_ago_make_room_unless_somebody_holds_them) {
  TablePieces pieces(1);
  const auto get = [&](uint64_t number) {
    auto piece =
        pieces.Get(number, [](size_t, std::span<DecodedColumn> out) { return Fill(1000, out); });
    EXPECT_TRUE(piece.ok());
    return piece.ok() ? *piece : nullptr;
  };
  pieces.set_limit(2 * get(99)->bytes());
  EXPECT_EQ(pieces.Find(99), nullptr);  // there was no room at all then
  const auto held = get(1);
  get(2);
  EXPECT_NE(pieces.Find(2), nullptr);
  get(3);  // 1 was used longest ago, but is held
  EXPECT_NE(pieces.Find(1), nullptr);
  EXPECT_EQ(pieces.Find(2), nullptr);
  const auto also = pieces.Find(3);
  get(4);  // no room
  EXPECT_EQ(pieces.Find(4), nullptr);
  EXPECT_EQ(pieces.used_bytes(), held->bytes() + also->bytes());
  pieces.set_limit(0);
  EXPECT_EQ(pieces.used_bytes(), held->bytes() + also->bytes());
}

TEST(TablePieces, whose_columns_are_decoded_together_are_decoded_in_one) {
  TablePieces pieces(3, /*together=*/true);
  pieces.set_limit(1 << 20);
  int calls = 0;
  const auto piece = pieces.Get(1, [&](size_t column, std::span<DecodedColumn> out) {
    ++calls;
    EXPECT_EQ(column, 0U);
    EXPECT_EQ(out.size(), 3U);
    return Fill(5, out);
  });
  ASSERT_TRUE(piece.ok());
  for (const DecodedColumn& column : (*piece)->columns) {
    EXPECT_EQ(column.values.values.size(), 5U);
  }
  EXPECT_EQ(calls, 1);
}

TEST(DecodedPiece, lays_values_of_one_size_out_row_by_row) {
  DecodedPiece piece;
  piece.columns.resize(4);
  const auto fill = [&](size_t i, uint64_t first, std::initializer_list<int> bytes) {
    piece.columns[i].first_row = first;
    for (const int byte : bytes) piece.columns[i].values.values.push_back(std::byte(byte));
  };
  fill(0, 5, {1, 2, 3});                       // rows 5 to 7
  fill(1, 5, {9, 9, 9, 9});                    // no size
  fill(2, 4, {0, 0, 10, 11, 20, 21, 30, 31});  // from row 4 on
  fill(3, 5, {4, 5, 6, 7, 8, 9, 10, 11, 12});
  const uint32_t widths[] = {1, 0, 2, 3};
  piece.LayOutRows(5, 3, widths);
  EXPECT_EQ(piece.row_bytes, 6U);
  std::vector<int> rows;
  for (size_t i = 0; i < piece.rows.size(); ++i) {
    rows.push_back(static_cast<int>(piece.rows.data()[i]));
  }
  EXPECT_EQ(rows,
            (std::vector<int>{4, 5, 6, 10, 11, 1, 7, 8, 9, 20, 21, 2, 10, 11, 12, 30, 31, 3}));
  EXPECT_EQ(piece.columns[0].in_row, 5U);
  EXPECT_EQ(piece.columns[1].in_row, DecodedColumn::kApart);
  EXPECT_EQ(piece.columns[1].values.values.size(), 4U);
  EXPECT_TRUE(piece.columns[2].values.values.empty());
}

TEST(TablePieces, are_finished_once_before_anyone_sees_them) {
  TablePieces pieces(3);
  pieces.set_limit(1 << 20);
  int finished = 0;
  const auto get = [&] {
    return pieces.Get(
        1, [](size_t, std::span<DecodedColumn> out) { return Fill(1, out); },
        [&](DecodedPiece* piece) {
          ++finished;
          piece->rows.Reset(7);
        });
  };
  for (int i = 0; i < 2; ++i) {
    const auto piece = get();
    ASSERT_TRUE(piece.ok());
    EXPECT_EQ((*piece)->rows.size(), 7U);
  }
  EXPECT_EQ(finished, 1);
}

TEST(TablePieces, that_failed_are_tried_again) {
  TablePieces pieces(2);
  pieces.set_limit(1 << 20);
  const auto failing = [](size_t column, std::span<DecodedColumn> out) {
    return column == 1 ? Status(Code::kDataLoss, "flipped") : Fill(1, out);
  };
  EXPECT_EQ(pieces.Get(5, failing).code(), Code::kDataLoss);
  EXPECT_EQ(pieces.Find(5), nullptr);
  EXPECT_TRUE(
      pieces.Get(5, [](size_t, std::span<DecodedColumn> out) { return Fill(1, out); }).ok());
  EXPECT_NE(pieces.Find(5), nullptr);
}

}  // namespace
}  // namespace forebay::feed
