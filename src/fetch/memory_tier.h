// The first tier: extents that were delivered and will be used again soon enough to be worth their
// memory. Evicts what is used last (the future is known), never by age.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "fetch/tier.h"

namespace forebay::fetch {

// Coordinator's thread only. Has a limit of its own, apart from the feeder's budget.
class MemoryTier : public Tier {
 public:
  MemoryTier(uint64_t limit_bytes, Executor& coordinator);

  const char* name() const override { return "memory"; }
  Ticket StartRead(std::vector<Piece> pieces, Priority priority, Time deadline,
                   TierSink* sink) override;
  void Promote(Ticket) override {}  // it has answered already
  void Cancel(Ticket) override {}

  // Takes over the buffer of a delivered extent. `next_use`: a position in the future order;
  // smaller is sooner. Kept only while everything kept with a later use has made room.
  void Offer(const Extent& extent, std::shared_ptr<const SlabBuffer> buffer, uint64_t next_use);
  uint64_t used_bytes() const { return used_; }
  uint64_t hits() const { return hits_; }

 private:
  struct Entry {
    Extent extent;
    std::shared_ptr<const SlabBuffer> buffer;
    uint64_t next_use = 0;
    uint64_t charged = 0;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // object, offset
  void Evict(Key key);
  // Copies what is here of `piece`; reports it and the gaps.
  void Answer(size_t index, const Piece& piece, TierSink* sink);

  uint64_t limit_;
  Executor& coordinator_;
  uint64_t used_ = 0;
  uint64_t hits_ = 0;
  Ticket next_ticket_ = 1;
  std::map<Key, Entry> entries_;
  std::set<std::pair<uint64_t, Key>> by_next_use_;
};

}  // namespace forebay::fetch
