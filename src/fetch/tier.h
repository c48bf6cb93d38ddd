// A place where bytes may be. The fetcher asks its tiers in turn; each may answer partly, and what
// it lacks goes to the next. The last one (the store) answers everything or fails.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/executor.h"
#include "base/extent.h"
#include "base/slab_pool.h"
#include "forebay/status.h"
#include "store/object_store.h"

namespace forebay::fetch {

using store::Priority;

// One contiguous piece of an item that is still missing, and where it goes.
struct Piece {
  Extent extent;
  std::vector<MutableBytes> target;  // together extent.range.size()
};

struct PieceReport {
  Duration total{};  // from asked for to there
  Duration first_byte{};
  int attempts = 1;
  bool hedged = false;  // a second request was faster
};

// Called on the coordinator's thread. Every byte of every piece that was passed to StartRead is
// reported once, as there, missing or failed; then OnTierDone once. Afterwards nobody touches the
// targets.
class TierSink {
 public:
  virtual ~TierSink() = default;
  // `extent` lies inside piece `piece`.
  virtual void OnBytes(size_t piece, const Extent& extent, const PieceReport& report) = 0;
  virtual void OnMissing(size_t piece, Piece rest) = 0;
  virtual void OnFailed(size_t piece, Status status) = 0;
  virtual void OnTierDone() = 0;
};

// Coordinator's thread only.
class Tier {
 public:
  using Ticket = uint64_t;  // 0 is never given out

  virtual ~Tier() = default;
  virtual const char* name() const = 0;
  // `sink` must live until OnTierDone, which never runs inside StartRead.
  virtual Ticket StartRead(std::vector<Piece> pieces, Priority priority, Time deadline,
                           TierSink* sink) = 0;
  // The consumer waits for these bytes: report each piece as it comes, and let them go before
  // others.
  virtual void Promote(Ticket ticket) = 0;
  // What is not there yet fails with kCancelled, soon.
  virtual void Cancel(Ticket ticket) = 0;
};

}  // namespace forebay::fetch
