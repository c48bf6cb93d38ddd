#include "feed/record_chunks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace forebay::feed {
namespace {

constexpr uint64_t kChunkBytes = 4ULL << 20;    // of neighbours, about
constexpr uint64_t kSamplesMost = 4096;         // their places take memory too
constexpr uint64_t kGapBytes = 256 << 10;       // read through; equal for all that share it
constexpr uint64_t kPlacesBytes = 40ULL << 20;  // of all records of the chunks that are kept
constexpr uint64_t kPlaceBytes = 96;            // of one with a field, about
constexpr size_t kOutlinesKept = 32 << 10;      // of a few hundred bytes

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
  if (kept_.size() >= most_) {
    kept_.erase(by_use_.back());
    by_use_.pop_back();
  }
  by_use_.push_front(number);
  kept_[number] = {std::move(chunk), by_use_.begin()};
}

void RecordChunks::Expect(uint64_t open) {
  const uint64_t most = std::max<uint64_t>(kPlacesBytes / (each_ * kPlaceBytes), 1);
  with_records_ = open <= most;
  most_ = with_records_ ? most : kOutlinesKept;
}

RecordChunks::Needed RecordChunks::NeededOf(const catalog::RecordView& record,
                                            std::vector<ByteRange>& scratch) const {
  fields_.RangesOf(record, needed_, scratch);
  Needed needed{.span = record.range};
  bool any = false;
  for (const ByteRange& range : scratch) {
    if (range.empty()) continue;
    needed.span = any ? ByteRange{std::min(needed.span.offset, range.offset),
                                  std::max(needed.span.end, range.end)}
                      : range;
    any = true;
    needed.bytes += range.size();
  }
  return needed;
}

uint64_t RecordChunks::UsedOf(const catalog::RecordView& record) const {
  std::vector<ByteRange> scratch;
  return NeededOf(record, scratch).bytes;
}

void RecordChunks::Add(const catalog::RecordView& record, const ByteRange& span,
                       RecordChunk& chunk) const {
  std::vector<Extent>& extents = chunk.extents;
  const uint64_t number = chunk.count++;
  if (!extents.empty() && extents.back().object == record.shard) {
    ByteRange& last = extents.back().range;
    // Rows of packed documents may begin before the one that came before them.
    const ByteRange both{std::min(span.offset, last.offset), std::max(span.end, last.end)};
    if (span.offset <= last.end + kGapBytes && last.offset <= span.end + kGapBytes &&
        both.size() <= RecordChunk::kExtentMost) {
      last = both;
      return;
    }
  }
  extents.push_back({record.shard, span});
  chunk.begins.push_back(static_cast<uint32_t>(number));
}

Result<std::shared_ptr<const RecordChunk>> RecordChunks::Of(uint64_t sample) const {
  const uint64_t number = sample / each_;
  if (auto known = Find(number)) return known;
  auto chunk = std::make_shared<RecordChunk>();
  chunk->first = number * each_;
  const uint64_t end = std::min(catalog_.count(), chunk->first + each_);
  catalog::RecordTable records;
  records.Reserve(end - chunk->first);
  FB_RETURN_IF_ERROR(catalog_.Read(chunk->first, end, records));
  if (with_records_) chunk->used_bytes.reserve(records.size());
  std::vector<ByteRange> scratch;
  for (size_t i = 0; i < records.size(); ++i) {
    const Needed needed = NeededOf(records[i], scratch);
    Add(records[i], needed.span, *chunk);
    if (with_records_) chunk->used_bytes.push_back(needed.bytes);
  }
  if (with_records_) chunk->records = std::move(records);
  Keep(number, chunk);
  return std::shared_ptr<const RecordChunk>(std::move(chunk));
}

}  // namespace forebay::feed
