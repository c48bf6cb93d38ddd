// Documents of unequal length into rows of equal length, as language models are trained: a pure
// function of the documents' lengths in the order of the run, so that the cursor is a document's
// position and everything above it is computed again.
//
// The documents of a run are packed window by window: `window` documents in a row, by best fit with
// the longest first (Ding et al. 2024, "Fewer truncations improve language modeling"), and the rows
// of a window are shuffled. No document is cut that fits into a row; a longer one fills rows of its
// own, and its rest is packed like a document. Nothing is carried from one window to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "forebay/status.h"

namespace forebay::order {

struct PackingSpec {
  uint64_t row_tokens = 2048;  // of every row
  uint64_t window = 1024;      // documents packed together
  uint64_t seed = 0;
  // Version 1: see above. Another algorithm is another number.
  bool operator==(const PackingSpec&) const = default;
};

// A document, or a piece of one, in a row.
struct PackedPiece {
  uint64_t document = 0;  // its position in the order; in PackWindow: in the window
  uint64_t offset = 0;    // tokens of it that lie in other rows, before this piece
  uint64_t tokens = 0;
  bool operator==(const PackedPiece&) const = default;
};
using PackedRow = std::vector<PackedPiece>;  // at most row_tokens together

// Packs one window. Documents without tokens are in no row. The same lengths give the same rows.
std::vector<PackedRow> PackWindow(std::span<const uint64_t> tokens, uint64_t row_tokens);

// One epoch of an order, packed. `tokens_at` gives the length of the document at a position of the
// epoch, in [0, documents). Not thread-safe: keeps the window it packed last.
class PackedEpoch {
 public:
  using TokensAt = std::function<uint64_t(uint64_t position)>;
  // Goes through all lengths once to number the rows; memory: 8 bytes a window. Errors:
  // kInvalidArgument (row_tokens or window is 0).
  static Result<PackedEpoch> Make(const PackingSpec& spec, uint64_t epoch, uint64_t documents,
                                  TokensAt tokens_at);

  uint64_t rows() const { return first_row_.back(); }
  // row < rows(). Its pieces, by position of the epoch.
  PackedRow Row(uint64_t row);
  // Where a run that has taken `row` rows stands in the documents: the first of the window that the
  // next row is from, and how many rows of that window were taken. A cursor that does not depend on
  // rows before it.
  struct Cursor {
    uint64_t document = 0;
    uint64_t row_in_window = 0;
    bool operator==(const Cursor&) const = default;
  };
  Cursor CursorAt(uint64_t row) const;
  // Errors: kInvalidArgument (no window starts at that document, or it has not that many rows).
  Result<uint64_t> RowAt(const Cursor& cursor) const;
  // Tokens in all rows, of rows() * row_tokens places.
  uint64_t tokens() const { return tokens_; }
  // No row has more.
  uint64_t pieces_most() const { return pieces_most_; }
  // The window packed last is packed again, as after lengths that were not known.
  void Forget() { kept_window_ = ~uint64_t{0}; }

 private:
  PackedEpoch() = default;
  std::vector<uint64_t> LengthsOf(uint64_t window) const;
  uint64_t WindowOf(uint64_t row) const;

  PackingSpec spec_;
  uint64_t key_ = 0;
  uint64_t documents_ = 0;
  TokensAt tokens_at_;
  std::vector<uint64_t> first_row_;  // per window, and one past the last
  uint64_t tokens_ = 0;
  uint64_t pieces_most_ = 0;
  uint64_t kept_window_ = ~uint64_t{0};
  std::vector<PackedRow> kept_;
};

// A long text cut into windows of `length` tokens, each `stride` after the one before, as when
// documents are laid end to end. Windows that the text does not fill are left out.
class TokenWindows {
 public:
  // length > 0, stride > 0.
  TokenWindows(uint64_t tokens, uint64_t length, uint64_t stride);
  uint64_t count() const { return count_; }
  // i < count(). The first token of window i.
  uint64_t FirstOf(uint64_t i) const { return i * stride_; }
  uint64_t length() const { return length_; }

 private:
  uint64_t length_;
  uint64_t stride_;
  uint64_t count_;
};

}  // namespace forebay::order
