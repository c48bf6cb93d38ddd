// Neighbouring records of a catalog, which are read together: small ones that lie side by side cost
// one request for some MiB of them.
#pragma once

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
  catalog::RecordTable records;
  std::vector<uint32_t> extent_of;
  std::vector<uint64_t> used_bytes;  // of each, what is needed
  std::vector<Extent> extents;
  bool Holds(uint64_t sample) const { return sample - first < records.size(); }
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
        each_(RecordChunk::SamplesOf(catalog)) {}

  uint64_t each() const { return each_; }  // so many records, but for the last chunk
  // The one that has `sample`. Errors: those of the catalog.
  Result<std::shared_ptr<const RecordChunk>> Of(uint64_t sample) const FB_EXCLUDES(mutex_);

 private:
  std::shared_ptr<const RecordChunk> Find(uint64_t number) const FB_EXCLUDES(mutex_);
  void Keep(uint64_t number, std::shared_ptr<const RecordChunk> chunk) const FB_EXCLUDES(mutex_);
  void Add(const catalog::RecordView& record, std::vector<ByteRange>& scratch,
           RecordChunk& chunk) const;

  const catalog::RecordsCatalog& catalog_;
  const RecordFields& fields_;
  const std::vector<bool>& needed_;
  const uint64_t each_;
  struct Kept {
    std::shared_ptr<const RecordChunk> chunk;
    std::list<uint64_t>::iterator place;
  };
  mutable Mutex mutex_;
  mutable std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  mutable std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace forebay::feed
