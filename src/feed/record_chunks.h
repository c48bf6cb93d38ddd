// Neighbouring records of a catalog, which are read together: small ones that lie side by side cost
// one request for some MiB of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/extent.h"
#include "base/mutex.h"
#include "catalog/records_catalog.h"
#include "feed/record_fields.h"

namespace forebay::feed {

// Records that follow one another, and what is read for them: each lies in one extent.
struct RecordChunk {
  static constexpr uint64_t kExtentMost = 8ULL << 20;  // one GET's worth
  // How many make one: some MiB of them. It decides the blocks of a block shuffle: a function of
  // the catalog alone, whatever is appended.
  static uint64_t SamplesOf(const catalog::RecordsCatalog& catalog);

  uint64_t first = 0;
  uint64_t count = 0;
  std::vector<Extent> extents;
  std::vector<uint32_t> begins;      // of each extent, its first record in the chunk
  catalog::RecordTable records;      // all of them; empty: they are looked up one by one
  std::vector<uint64_t> used_bytes;  // of each of `records`, what is needed
  bool Holds(uint64_t sample) const { return sample - first < count; }
  size_t ExtentOf(uint64_t sample) const {
    if (extents.size() == 1) return 0;
    const auto after = std::ranges::upper_bound(begins, sample - first);
    return static_cast<size_t>(after - begins.begin()) - 1;
  }
};

// Those of a catalog, of which some that were used last are kept. Thread-safe.
class RecordChunks {
 public:
  // `needed`: of the fields. All of them outlive it.
  RecordChunks(const catalog::RecordsCatalog& catalog, const RecordFields& fields,
               const std::vector<bool>& needed)
      : catalog_(catalog),
        fields_(fields),
        needed_(needed),
        each_(RecordChunk::SamplesOf(catalog)) {
    Expect(1);
  }

  // Before the first use: `open` of them may be in use at a time. Where the places of all their
  // records take too much memory, what is kept of a chunk is its extents.
  void Expect(uint64_t open);
  uint64_t each() const { return each_; }  // so many records, but for the last chunk
  // The one that has `sample`. Errors: those of the catalog.
  Result<std::shared_ptr<const RecordChunk>> Of(uint64_t sample) const FB_EXCLUDES(mutex_);
  uint64_t UsedOf(const catalog::RecordView& record) const;  // of its bytes, what is needed

 private:
  std::shared_ptr<const RecordChunk> Find(uint64_t number) const FB_EXCLUDES(mutex_);
  void Keep(uint64_t number, std::shared_ptr<const RecordChunk> chunk) const FB_EXCLUDES(mutex_);
  struct Needed {
    ByteRange span;
    uint64_t bytes = 0;
  };
  Needed NeededOf(const catalog::RecordView& record, std::vector<ByteRange>& scratch) const;
  void Add(const catalog::RecordView& record, const ByteRange& span, RecordChunk& chunk) const;

  const catalog::RecordsCatalog& catalog_;
  const RecordFields& fields_;
  const std::vector<bool>& needed_;
  const uint64_t each_;
  bool with_records_ = true;
  size_t most_ = 1;
  struct Kept {
    std::shared_ptr<const RecordChunk> chunk;
    std::list<uint64_t>::iterator place;
  };
  mutable Mutex mutex_;
  mutable std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  mutable std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace forebay::feed
