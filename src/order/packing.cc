#include "order/packing.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "order/permutation.h"

namespace forebay::order {

std::vector<PackedRow> PackWindow(std::span<const uint64_t> tokens, uint64_t row_tokens) {
  FB_ASSERT(row_tokens > 0);
  std::vector<PackedRow> rows;
  std::vector<PackedPiece> pieces;  // shorter than a row
  for (size_t document = 0; document < tokens.size(); ++document) {
    uint64_t offset = 0;
    for (; tokens[document] - offset >= row_tokens; offset += row_tokens) {
      rows.push_back({{document, offset, row_tokens}});
    }
    if (offset < tokens[document]) pieces.push_back({document, offset, tokens[document] - offset});
  }
  std::vector<size_t> longest_first(pieces.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::ranges::sort(longest_first, [&](size_t a, size_t b) {
    return pieces[a].tokens != pieces[b].tokens ? pieces[a].tokens > pieces[b].tokens : a < b;
  });
  std::set<std::pair<uint64_t, size_t>> open;  // (room, row)
  for (const size_t i : longest_first) {
    const PackedPiece& piece = pieces[i];
    const auto best = open.lower_bound({piece.tokens, 0});
    size_t row = rows.size();
    uint64_t room = row_tokens;
    if (best != open.end()) {
      std::tie(room, row) = *best;
      open.erase(best);
    } else {
      rows.emplace_back();
    }
    rows[row].push_back(piece);
    if (room > piece.tokens) open.emplace(room - piece.tokens, row);
  }
  return rows;
}

Result<PackedEpoch> PackedEpoch::Make(const PackingSpec& spec, uint64_t epoch, uint64_t documents,
                                      TokensAt tokens_at) {
  if (spec.row_tokens == 0 || spec.window == 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("rows of {} tokens from windows of {} documents: both must be at "
                              "least 1",
                              spec.row_tokens, spec.window));
  }
  PackedEpoch packed;
  packed.spec_ = spec;
  packed.key_ = DeriveKey(DeriveKey(spec.seed, HashName("packing/v1")), epoch);
  packed.documents_ = documents;
  packed.tokens_at_ = std::move(tokens_at);
  packed.first_row_.push_back(0);
  for (uint64_t first = 0; first < documents; first += spec.window) {
    const auto lengths = packed.LengthsOf(first / spec.window);
    packed.tokens_ += std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
    const std::vector<PackedRow> rows = PackWindow(lengths, spec.row_tokens);
    for (const PackedRow& row : rows) {
      packed.pieces_most_ = std::max<uint64_t>(packed.pieces_most_, row.size());
    }
    packed.first_row_.push_back(packed.first_row_.back() + rows.size());
  }
  return packed;
}

std::vector<uint64_t> PackedEpoch::LengthsOf(uint64_t window) const {
  std::vector<uint64_t> lengths;
  const uint64_t first = window * spec_.window;
  const uint64_t end = std::min(documents_, first + spec_.window);
  for (uint64_t position = first; position < end; ++position) {
    lengths.push_back(tokens_at_(position));
  }
  return lengths;
}

uint64_t PackedEpoch::WindowOf(uint64_t row) const {
  return static_cast<uint64_t>(std::ranges::upper_bound(first_row_, row) - first_row_.begin()) - 1;
}

PackedRow PackedEpoch::Row(uint64_t row) {
  FB_ASSERT(row < rows());
  const uint64_t window = WindowOf(row);
  if (kept_window_ != window) {
    kept_ = PackWindow(LengthsOf(window), spec_.row_tokens);
    kept_window_ = window;
  }
  const Permutation scatter(kept_.size(), DeriveKey(key_, window));
  PackedRow pieces = kept_[scatter.At(row - first_row_[window])];
  for (PackedPiece& piece : pieces) piece.document += window * spec_.window;
  return pieces;
}

PackedEpoch::Cursor PackedEpoch::CursorAt(uint64_t row) const {
  FB_ASSERT(row <= rows());
  if (row == rows()) return {documents_, 0};
  const uint64_t window = WindowOf(row);
  return {window * spec_.window, row - first_row_[window]};
}

Result<uint64_t> PackedEpoch::RowAt(const Cursor& cursor) const {
  if (cursor.document >= documents_ && cursor.row_in_window == 0) return rows();
  const uint64_t window = cursor.document / spec_.window;
  if (cursor.document % spec_.window != 0 || cursor.document >= documents_ ||
      cursor.row_in_window >= first_row_[window + 1] - first_row_[window]) {
    return Status(Code::kInvalidArgument,
                  fmt::format("no row {} of a packing window starts at document {}",
                              cursor.row_in_window, cursor.document));
  }
  return first_row_[window] + cursor.row_in_window;
}

TokenWindows::TokenWindows(uint64_t tokens, uint64_t length, uint64_t stride)
    : length_(length),
      stride_(stride),
      count_(tokens < length ? 0 : (tokens - length) / stride + 1) {
  FB_ASSERT(length > 0 && stride > 0);
}

}  // namespace forebay::order
