#include "fetch/memory_tier.h"

#include <algorithm>
#include <utility>

namespace forebay::fetch {
namespace {

// The sub-list of `target` that holds [offset, offset + length) of it.
std::vector<MutableBytes> Slice(const std::vector<MutableBytes>& target, uint64_t offset,
                                uint64_t length) {
  std::vector<MutableBytes> pieces;
  for (const MutableBytes piece : target) {
    if (length == 0) break;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const uint64_t n = std::min<uint64_t>(piece.size() - offset, length);
    pieces.push_back(piece.subspan(offset, n));
    offset = 0;
    length -= n;
  }
  return pieces;
}

Piece SubPiece(const Piece& piece, ByteRange range) {
  return {{piece.extent.object, range},
          Slice(piece.target, range.offset - piece.extent.range.offset, range.size())};
}

}  // namespace

MemoryTier::MemoryTier(uint64_t limit_bytes, Executor& coordinator)
    : limit_(limit_bytes), coordinator_(coordinator) {}

Tier::Ticket MemoryTier::StartRead(std::vector<Piece> pieces, Priority, Time, TierSink* sink) {
  // Answered in a turn of its own, so that OnTierDone never runs inside StartRead.
  coordinator_.Post([this, pieces = std::move(pieces), sink] {
    for (size_t i = 0; i < pieces.size(); ++i) Answer(i, pieces[i], sink);
    sink->OnTierDone();
  });
  return next_ticket_++;
}

void MemoryTier::Answer(size_t index, const Piece& piece, TierSink* sink) {
  const ByteRange want = piece.extent.range;
  uint64_t at = want.offset;
  const auto missing = [&](uint64_t end) {
    if (at < end) sink->OnMissing(index, SubPiece(piece, {at, end}));
  };
  auto it = entries_.upper_bound({piece.extent.object, want.offset});
  if (it != entries_.begin()) --it;
  for (; it != entries_.end() && at < want.end; ++it) {
    const Extent& have = it->second.extent;
    if (have.object > piece.extent.object || have.range.offset >= want.end) break;
    if (have.object != piece.extent.object || have.range.end <= at) continue;
    const ByteRange both{std::max(at, have.range.offset), std::min(want.end, have.range.end)};
    missing(both.offset);
    const Piece part = SubPiece(piece, both);
    size_t from = both.offset - have.range.offset;
    for (const MutableBytes to : part.target) {
      it->second.buffer->CopyOut(from, to);
      from += to.size();
    }
    ++hits_;
    sink->OnBytes(index, part.extent, {});
    at = both.end;
  }
  missing(want.end);
}

void MemoryTier::Offer(const Extent& extent, std::shared_ptr<const SlabBuffer> buffer,
                       uint64_t next_use) {
  const uint64_t charged = buffer->slab_count() * kSlabBytes;
  const Key key{extent.object, extent.range.offset};
  if (charged > limit_) return;
  if (const auto it = entries_.find(key); it != entries_.end()) {
    if (it->second.extent.range.end > extent.range.end) return;  // what is kept is more
    Evict(key);
  }
  while (used_ + charged > limit_) {
    const auto last = std::prev(by_next_use_.end());
    if (last->first <= next_use) return;  // everything here is used sooner
    Evict(last->second);
  }
  used_ += charged;
  by_next_use_.insert({next_use, key});
  entries_[key] = {extent, std::move(buffer), next_use, charged};
}

void MemoryTier::Evict(Key key) {
  const auto it = entries_.find(key);
  used_ -= it->second.charged;
  by_next_use_.erase({it->second.next_use, key});
  entries_.erase(it);
}

}  // namespace forebay::fetch
