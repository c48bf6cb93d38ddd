// Decoded columns of pieces of tables, kept while their rows are being drawn: a shuffle comes to
// the same piece in batch after batch, and a page is decoded once for all of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "forebay/status.h"
#include "format/parquet.h"

namespace forebay::feed {

struct DecodedColumn {
  format::ParquetValues values;
  uint64_t first_row = 0;  // of its row group
};

// Some rows of some columns.
struct DecodedPiece {
  std::vector<DecodedColumn> columns;
  uint64_t bytes() const;
};

// Thread-safe. Keeps the pieces used last within a limit of its own, apart from the feeder's
// budget; those that somebody holds count too. What does not fit lives as long as whoever asked for
// it.
class TablePieces {
 public:
  explicit TablePieces(size_t columns) : columns_(columns) {}
  void set_limit(uint64_t bytes) FB_EXCLUDES(mutex_);

  // Null: it is not there, or not whole.
  std::shared_ptr<const DecodedPiece> Find(uint64_t number) FB_EXCLUDES(mutex_);
  // Callers that want the same piece share its columns out. `decode` may be called for any column,
  // and by each caller for several. Waits at most a minute for what others have begun.
  using DecodeColumn = std::function<Status(size_t column, DecodedColumn* out)>;
  Result<std::shared_ptr<const DecodedPiece>> Get(uint64_t number, const DecodeColumn& decode)
      FB_EXCLUDES(mutex_);
  uint64_t used_bytes() FB_EXCLUDES(mutex_);

 private:
  // A piece that is being decoded.
  struct Work {
    std::shared_ptr<DecodedPiece> piece;
    size_t next = 0;  // the column that nobody has begun
    size_t done = 0;
    Status status;
  };
  struct Kept {
    std::shared_ptr<const DecodedPiece> piece;
    uint64_t bytes = 0;
    std::list<uint64_t>::iterator place;
  };
  std::shared_ptr<Work> WorkOn(uint64_t number) FB_REQUIRES(mutex_);
  std::shared_ptr<const DecodedPiece> FindKept(uint64_t number) FB_REQUIRES(mutex_);
  void Keep(uint64_t number, const std::shared_ptr<const DecodedPiece>& piece) FB_REQUIRES(mutex_);
  bool MakeRoom(uint64_t bytes) FB_REQUIRES(mutex_);

  const size_t columns_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t limit_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t used_ FB_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Work>> works_ FB_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace forebay::feed
