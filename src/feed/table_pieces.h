// Decoded columns of pieces of tables, kept while their rows are being drawn: a shuffle comes to
// the same piece in batch after batch, and a page is decoded once for all of them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "forebay/status.h"
#include "format/table_values.h"
#include "sys/large_bytes.h"

namespace forebay::feed {

struct DecodedColumn {
  static constexpr uint32_t kApart = ~uint32_t{0};
  format::TableValues values;  // their bytes are empty where they lie in the piece's rows
  uint64_t first_row = 0;      // of its group
  uint32_t in_row = kApart;    // where in a row of the piece
};

// Some rows of some columns. After LayOutRows values of one size lie row by row, so that a row that
// is drawn at random is one line of the cache and not one for each column.
struct DecodedPiece {
  std::vector<DecodedColumn> columns;
  sys::LargeBytes rows;
  uint32_t row_bytes = 0;
  uint64_t first_row = 0;  // of the group
  uint64_t bytes() const;
  // The value of a column whose values are of `width`, in `row` of the group.
  const std::byte* At(size_t column, uint32_t width, uint64_t row) const {
    const DecodedColumn& of = columns[column];
    if (of.in_row != DecodedColumn::kApart) {
      return rows.data() + (row - first_row) * row_bytes + of.in_row;
    }
    return of.values.values.data() + (row - of.first_row) * width;
  }
  // Puts the columns' values of one size into rows: `count` of them, from `first` on, which every
  // column has. `widths`: of each column, 0 where values differ in size.
  void LayOutRows(uint64_t first, uint64_t count, std::span<const uint32_t> widths);
};

// Thread-safe. Keeps the pieces used last within a limit of its own, apart from the feeder's
// budget; those that somebody holds count too. What does not fit lives as long as whoever asked for
// it.
class TablePieces {
 public:
  // `together`: all columns of a piece are decoded in one.
  explicit TablePieces(size_t columns, bool together = false)
      : columns_(columns), parts_(together ? std::min<size_t>(columns, 1) : columns) {}
  void set_limit(uint64_t bytes) FB_EXCLUDES(mutex_);

  // Null: it is not there, or not whole.
  std::shared_ptr<const DecodedPiece> Find(uint64_t number) FB_EXCLUDES(mutex_);
  // Callers that want the same piece share its columns out. `decode` may be called for any column,
  // and by each caller for several; `out`: that column, or all of them where they are decoded
  // together. Waits at most a minute for what others have begun. `finish` is called once, when all
  // columns are there.
  using DecodeColumn = std::function<Status(size_t column, std::span<DecodedColumn> out)>;
  using Finish = std::function<void(DecodedPiece* piece)>;
  Result<std::shared_ptr<const DecodedPiece>> Get(uint64_t number, const DecodeColumn& decode,
                                                  const Finish& finish = nullptr)
      FB_EXCLUDES(mutex_);
  uint64_t used_bytes() FB_EXCLUDES(mutex_);

 private:
  // A piece that is being decoded.
  struct Work {
    std::shared_ptr<DecodedPiece> piece;
    size_t next = 0;  // the part that nobody has begun
    size_t done = 0;
    bool finished = false;
    Status status;
  };
  struct Kept {
    std::shared_ptr<DecodedPiece> piece;
    uint64_t bytes = 0;
    std::list<uint64_t>::iterator place;
  };
  std::shared_ptr<Work> WorkOn(uint64_t number) FB_REQUIRES(mutex_);
  std::shared_ptr<const DecodedPiece> FindKept(uint64_t number) FB_REQUIRES(mutex_);
  void Keep(uint64_t number, const std::shared_ptr<DecodedPiece>& piece) FB_REQUIRES(mutex_);
  bool MakeRoom(uint64_t bytes) FB_REQUIRES(mutex_);

  const size_t columns_;
  const size_t parts_;  // that are decoded each by itself: columns, or all of them
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t limit_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t used_ FB_GUARDED_BY(mutex_) = 0;
  bool told_ FB_GUARDED_BY(mutex_) = false;  // that a piece is too large to be kept
  std::unordered_map<uint64_t, std::shared_ptr<Work>> works_ FB_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
  // Of a piece that went, for the next one: memory that was touched is worth more than fresh one.
  sys::LargeBytes spare_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::feed
