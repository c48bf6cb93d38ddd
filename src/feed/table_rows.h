// What the plan of a table's rows holds, and its decoder. Of TableSamples alone.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "feed/table_samples.h"

namespace forebay::feed {

// A piece that some of the rows lie in.
struct TableSamples::Part {
  size_t piece = 0;
  uint64_t group_first = 0;  // the sample that is row 0 of its group, modulo 2^64
  std::shared_ptr<const DecodedPiece> decoded;  // null: it was not yet, when this was planned
};

// Pieces of one item that were decoded by units of their own, until its rows are copied.
class TableSamples::Opened {
 public:
  explicit Opened(size_t parts) : pieces_(parts) {}
  void Set(size_t part, std::shared_ptr<const DecodedPiece> piece) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    pieces_[part] = std::move(piece);
  }
  std::shared_ptr<const DecodedPiece> Get(size_t part) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return pieces_[part];
  }

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<const DecodedPiece>> pieces_ FB_GUARDED_BY(mutex_);
};

struct TableSamples::Rows {
  std::vector<Part> parts;
  std::vector<uint32_t> part_of;  // of each row
  std::vector<uint64_t> samples;  // of each row
  bool follow = false;            // each sample is the one behind the one before
  // Where several parts are read, each is decoded as soon as it is there: by the plan's first
  // units, which have no rows.
  std::vector<uint32_t> alone;
  std::shared_ptr<Opened> opened;
};

}  // namespace forebay::feed
