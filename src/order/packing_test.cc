#include "order/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace forebay::order {
namespace {

// Lengths as texts have them: many short ones, few long ones.
uint64_t LengthAt(uint64_t position) {
  Random random(DeriveKey(3, position));
  const uint64_t shift = random.NextBelow(9);
  return random.NextBelow(uint64_t{2} << shift);
}

void ExpectEachTokenOnce(const std::vector<PackedRow>& rows, const std::vector<uint64_t>& lengths,
                         uint64_t row_tokens) {
  std::map<uint64_t, std::vector<std::pair<uint64_t, uint64_t>>> of_document;
  for (const PackedRow& row : rows) {
    uint64_t sum = 0;
    for (const PackedPiece& piece : row) {
      EXPECT_GT(piece.tokens, 0U);
      sum += piece.tokens;
      of_document[piece.document].emplace_back(piece.offset, piece.tokens);
    }
    EXPECT_LE(sum, row_tokens);
    EXPECT_GT(sum, 0U);
  }
  for (uint64_t document = 0; document < lengths.size(); ++document) {
    auto& pieces = of_document[document];
    std::ranges::sort(pieces);
    uint64_t at = 0;
    for (const auto& [offset, tokens] : pieces) {
      ASSERT_EQ(offset, at);
      at += tokens;
    }
    ASSERT_EQ(at, lengths[document]);
    if (lengths[document] <= row_tokens) {
      EXPECT_LE(pieces.size(), 1U) << "cut without need";
    }
  }
}

TEST(PackWindow, every_token_comes_once_and_what_fits_is_not_cut) {
  for (const uint64_t row_tokens : {1ULL, 7ULL, 64ULL, 300ULL, 5000ULL}) {
    for (const uint64_t documents : {0ULL, 1ULL, 2ULL, 50ULL, 500ULL}) {
      std::vector<uint64_t> lengths;
      for (uint64_t i = 0; i < documents; ++i) lengths.push_back(LengthAt(i));
      ExpectEachTokenOnce(PackWindow(lengths, row_tokens), lengths, row_tokens);
    }
  }
}

TEST(PackWindow, the_best_fit_is_taken) {
  const std::vector<uint64_t> lengths = {6, 5, 4, 3, 2};
  const std::vector<PackedRow> expected = {{{0, 0, 6}, {2, 0, 4}},
                                           {{1, 0, 5}, {3, 0, 3}, {4, 0, 2}}};
  EXPECT_EQ(PackWindow(lengths, 10), expected);
}

TEST(PackWindow, hardly_anything_is_lost) {
  std::vector<uint64_t> lengths;
  uint64_t tokens = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    lengths.push_back(LengthAt(i));
    tokens += lengths.back();
  }
  const auto rows = PackWindow(lengths, 512);
  EXPECT_GT(static_cast<double>(tokens) / (static_cast<double>(rows.size()) * 512), 0.99);
}

TEST(PackedEpoch, rows_come_once_and_are_the_same_from_any_start) {
  constexpr uint64_t kDocuments = 1000;
  const PackingSpec spec{.row_tokens = 256, .window = 64, .seed = 9};
  auto packed = *PackedEpoch::Make(spec, 2, kDocuments, LengthAt);
  std::vector<PackedRow> rows;
  for (uint64_t row = 0; row < packed.rows(); ++row) rows.push_back(packed.Row(row));
  std::vector<uint64_t> lengths;
  for (uint64_t i = 0; i < kDocuments; ++i) lengths.push_back(LengthAt(i));
  ExpectEachTokenOnce(rows, lengths, 256);
  for (uint64_t row = 0; row <= packed.rows(); ++row) {
    const PackedEpoch::Cursor cursor = packed.CursorAt(row);
    EXPECT_EQ(cursor.document % 64 == 0 || cursor.document == kDocuments, true);
    ASSERT_EQ(*packed.RowAt(cursor), row);
  }
  // Another process that begins in the middle.
  auto other = *PackedEpoch::Make(spec, 2, kDocuments, LengthAt);
  for (uint64_t row = packed.rows() / 2; row < packed.rows(); row += 7) {
    EXPECT_EQ(other.Row(row), rows[row]);
  }
  // A longer data set does not alter what came before its last whole window.
  auto longer = *PackedEpoch::Make(spec, 2, kDocuments * 2, LengthAt);
  const uint64_t same = *packed.RowAt({kDocuments / 64 * 64, 0});
  for (uint64_t row = 0; row < same; ++row) EXPECT_EQ(longer.Row(row), rows[row]);
}

TEST(PackedEpoch, rows_of_a_window_are_scattered_anew_in_each_epoch) {
  const PackingSpec spec{.row_tokens = 64, .window = 1000, .seed = 9};
  auto first = *PackedEpoch::Make(spec, 0, 1000, LengthAt);
  auto second = *PackedEpoch::Make(spec, 1, 1000, LengthAt);
  ASSERT_EQ(first.rows(), second.rows());
  uint64_t equal = 0;
  for (uint64_t row = 0; row < first.rows(); ++row) equal += first.Row(row) == second.Row(row);
  EXPECT_LT(equal, first.rows() / 10);
}

TEST(PackedEpoch, what_is_no_packing_or_no_cursor_is_refused) {
  EXPECT_FALSE(PackedEpoch::Make({.row_tokens = 0}, 0, 5, LengthAt).ok());
  EXPECT_FALSE(PackedEpoch::Make({.window = 0}, 0, 5, LengthAt).ok());
  auto packed = *PackedEpoch::Make({.row_tokens = 64, .window = 10}, 0, 25, LengthAt);
  EXPECT_FALSE(packed.RowAt({5, 0}).ok());
  EXPECT_FALSE(packed.RowAt({10, 1000}).ok());
  EXPECT_FALSE(packed.RowAt({30, 1}).ok());
  auto none = *PackedEpoch::Make({}, 0, 0, LengthAt);
  EXPECT_EQ(none.rows(), 0U);
}

// Version 1's rows: a change here changes every packed run in the world.
TEST(PackedEpoch, rows_of_version_1_are_frozen) {
  auto packed = *PackedEpoch::Make({.row_tokens = 100, .window = 16, .seed = 1}, 0, 64, LengthAt);
  std::vector<uint64_t> got;
  for (uint64_t row = 0; row < 6; ++row) {
    for (const PackedPiece& piece : packed.Row(row)) got.push_back(piece.document);
  }
  EXPECT_EQ(got, (std::vector<uint64_t>{5, 5, 1, 0, 15, 8, 11, 5, 7}));
}

TEST(TokenWindows, cover_the_text_without_going_beyond_it) {
  for (uint64_t tokens = 0; tokens < 40; ++tokens) {
    for (const uint64_t length : {1ULL, 5ULL, 8ULL}) {
      for (const uint64_t stride : {1ULL, 5ULL, 9ULL}) {
        const TokenWindows windows(tokens, length, stride);
        uint64_t count = 0;
        while (count * stride + length <= tokens) ++count;
        ASSERT_EQ(windows.count(), count);
      }
    }
  }
}

}  // namespace
}  // namespace forebay::order
