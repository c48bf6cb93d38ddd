// extents -> bytes. Asks the tiers in turn; what one lacks goes to the next; large extents are cut
// into several GETs. Knows buffers, lengths and who is asked; never looks at payload. Coordinator's
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/slab_pool.h"
#include "fetch/tier.h"

namespace forebay::fetch {

// An item's bytes: one buffer per extent. Shared by the fetch and by whoever decodes.
struct FetchedItem {
  std::vector<Extent> extents;
  std::vector<std::shared_ptr<SlabBuffer>> buffers;
};

struct FetchStats {
  uint64_t gets = 0;           // pieces asked of the last tier
  uint64_t bytes_fetched = 0;  // that came from the last tier
  uint64_t bytes_from_memory = 0;
  uint64_t failed = 0;  // pieces that failed
  uint64_t hedged = 0;  // of which a second request was faster
};

// Called on the coordinator's thread, never inside Start or Retry.
class FetchSink {
 public:
  virtual ~FetchSink() = default;
  // Extent `index` is whole.
  virtual void OnExtent(uint64_t tag, size_t index) = 0;
  // One GET of the last tier came, for the latency statistics.
  virtual void OnPart(uint64_t tag, const PieceReport& report, uint64_t bytes) = 0;
  // No tier works on it any more. OK: every extent is whole. May be followed by Retry.
  virtual void OnFetchDone(uint64_t tag, Status status) = 0;
};

class Fetcher {
 public:
  struct Options {
    uint64_t part_bytes_max = 8ULL << 20;
    // Items have extents in common. One that is being fetched, or whose buffer somebody still
    // holds, is not fetched again: the items share the buffer.
    bool share = false;
  };
  Fetcher(std::shared_ptr<SlabPool> pool, std::vector<Tier*> tiers, FetchSink* sink,
          Options options);
  ~Fetcher();

  // Slab bytes that fetching these extents takes.
  static uint64_t BytesFor(const std::vector<Extent>& extents);

  struct Started {
    std::vector<size_t> whole;  // extents that are there already: OnExtent is not called for them
    bool running = false;       // false: all are, and OnFetchDone does not come
  };
  // `tag` is the caller's name for it, unused so far.
  Started Start(uint64_t tag, const std::vector<Extent>& extents, Priority priority, Time deadline);
  // Only after OnFetchDone with an error: asks again for what is missing, in the same buffers.
  Started Retry(uint64_t tag, Priority priority, Time deadline);
  void Promote(uint64_t tag);
  // OnFetchDone follows, if it has not come yet.
  void Cancel(uint64_t tag);
  const FetchedItem& item(uint64_t tag) const;
  // Only after OnFetchDone. The bytes live as long as somebody holds the returned item.
  FetchedItem Release(uint64_t tag);
  bool idle() const { return running_ == 0; }
  const FetchStats& stats() const { return stats_; }

 private:
  class Operation;
  // An extent that items share, by whom it was fetched, or is.
  struct Shared {
    std::weak_ptr<SlabBuffer> buffer;
    bool whole = false;
    uint64_t fetching = 0;                             // the tag of whoever does, one up; 0: nobody
    std::vector<std::pair<uint64_t, size_t>> waiting;  // tag, and which of its extents
  };
  std::unique_ptr<Operation>& Find(uint64_t tag);
  void TellWaiting(Shared& shared, const Status& status);
  void Forget();

  std::shared_ptr<SlabPool> pool_;
  std::vector<Tier*> tiers_;
  FetchSink* sink_;
  Options options_;
  FetchStats stats_;
  size_t running_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations_;
  std::map<Extent, Shared> shared_;
  size_t purge_at_ = 1024;  // entries of shared_
};

// The gap between two needed ranges that is worth reading through. One more parallel GET makes the
// slowest of the item's GETs a little slower (by `ttfb_share` of the median first byte) and costs
// `request_cpu_s`; a byte costs 1 / bandwidth of a connection. Both sides are seconds.
struct CoalesceCost {
  double first_byte_s = 0.1;  // a busy S3's, until it is measured
  double connection_bytes_per_s = 60e6;
  double ttfb_share = 0.03;
  double request_cpu_s = 50e-6;
  uint64_t GapBytes() const;
};

}  // namespace forebay::fetch
