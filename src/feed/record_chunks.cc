#include "feed/record_chunks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace forebay::feed {
namespace {

constexpr uint64_t kChunkBytes = 4ULL << 20;  // of neighbours, about
constexpr uint64_t kSamplesMost = 4096;       // their places take memory too
constexpr uint64_t kGapBytes = 256 << 10;     // read through; equal for all that share it
constexpr uint64_t kRecordsKept = 256 << 10;  // their places
constexpr uint64_t kChunksKept = 1024;

}  // namespace

uint64_t RecordChunk::SamplesOf(const catalog::RecordsCatalog& catalog) {
  const uint64_t mean = std::max<uint64_t>(catalog.mean_bytes(), 1);
  return std::bit_floor(std::clamp<uint64_t>(kChunkBytes / mean, 1, kSamplesMost));
}

std::shared_ptr<const RecordChunk> RecordChunks::Find(uint64_t number) const {
  const MutexLock lock(mutex_);
  const auto it = kept_.find(number);
  if (it == kept_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second.place);
  return it->second.chunk;
}

void RecordChunks::Keep(uint64_t number, std::shared_ptr<const RecordChunk> chunk) const {
  const MutexLock lock(mutex_);
  if (kept_.contains(number)) return;
  if (kept_.size() >= std::min(kRecordsKept / each_, kChunksKept)) {
    kept_.erase(by_use_.back());
    by_use_.pop_back();
  }
  by_use_.push_front(number);
  kept_[number] = {std::move(chunk), by_use_.begin()};
}

void RecordChunks::Add(const catalog::RecordView& record, std::vector<ByteRange>& scratch,
                       RecordChunk& chunk) const {
  fields_.RangesOf(record, needed_, scratch);
  ByteRange span = record.range;  // of what is needed
  uint64_t used = 0;
  bool any = false;
  for (const ByteRange& range : scratch) {
    if (range.empty()) continue;
    span =
        any ? ByteRange{std::min(span.offset, range.offset), std::max(span.end, range.end)} : range;
    any = true;
    used += range.size();
  }
  chunk.used_bytes.push_back(used);
  std::vector<Extent>& extents = chunk.extents;
  // Rows of packed documents may begin before the one that came before them.
  ByteRange both = span;
  if (!extents.empty()) {
    both = {std::min(span.offset, extents.back().range.offset),
            std::max(span.end, extents.back().range.end)};
  }
  const bool joins = !extents.empty() && extents.back().object == record.shard &&
                     span.offset <= extents.back().range.end + kGapBytes &&
                     extents.back().range.offset <= span.end + kGapBytes &&
                     both.size() <= RecordChunk::kExtentMost;
  if (joins) {
    extents.back().range = both;
  } else {
    extents.push_back({record.shard, span});
  }
  chunk.extent_of.push_back(static_cast<uint32_t>(extents.size() - 1));
}

Result<std::shared_ptr<const RecordChunk>> RecordChunks::Of(uint64_t sample) const {
  const uint64_t number = sample / each_;
  if (auto known = Find(number)) return known;
  auto chunk = std::make_shared<RecordChunk>();
  chunk->first = number * each_;
  const uint64_t end = std::min(catalog_.count(), chunk->first + each_);
  const uint64_t records = end - chunk->first;
  chunk->records.Reserve(records);
  chunk->extent_of.reserve(records);
  chunk->used_bytes.reserve(records);
  FB_RETURN_IF_ERROR(catalog_.Read(chunk->first, end, chunk->records));
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i < chunk->records.size(); ++i) Add(chunk->records[i], ranges, *chunk);
  Keep(number, chunk);
  return std::shared_ptr<const RecordChunk>(std::move(chunk));
}

}  // namespace forebay::feed
