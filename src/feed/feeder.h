// The ring between plan and consumer: pulls items from the planner, reserves their bytes strictly
// in sequence order, has them fetched and decoded into the batch's one output block, and hands the
// groups on in order. The only place that reserves memory. Coordinator's thread only.
//
// A failed or late prefetch never fails a step: what the head lacks is asked for again at demand
// priority; only when that fails too is it the sample's error.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/budget.h"
#include "feed/batch_layout.h"
#include "feed/dataset.h"
#include "feed/decode_pool.h"
#include "feed/late_rows.h"
#include "feed/output_pool.h"
#include "feed/sampler.h"
#include "fetch/fetcher.h"
#include "fetch/memory_tier.h"
#include "plan/planner.h"

namespace forebay::feed {

// A whole batch, ready to be handed out.
struct ReadyGroup {
  uint64_t generation = 0;
  uint64_t group = 0;
  uint64_t epoch = 0;
  uint64_t position = 0;        // of its first sample in the epoch, over all ranks
  uint64_t global_samples = 0;  // what the position advances by
  uint64_t rows = 0;
  std::shared_ptr<std::byte> block;  // the data set's arrays, one after the other
  std::shared_ptr<const BatchLayout> layout;
  std::vector<int64_t> samples;    // per row, of its source
  std::vector<int32_t> sources;    // per row
  std::vector<bool> pads;          // per row
  std::vector<uint64_t> skipped;   // positions whose sample was replaced
  std::vector<uint64_t> replaced;  // the samples that were, in the data set's numbering
  Status status;                   // not OK: the first bad sample's error
};

struct FeedStats {
  uint64_t samples = 0;
  uint64_t groups = 0;
  uint64_t parts_useful = 0;  // there before the consumer waited for its group
  uint64_t parts_late = 0;    // came while it waited
  uint64_t parts_wasted = 0;  // fetched for an item that was dropped
  uint64_t parts_failed = 0;
  uint64_t bytes_used = 0;      // of extents, of delivered items
  uint64_t demand_retries = 0;  // failed prefetches asked for again
  uint64_t substitutes = 0;
  Duration decode_busy{};
  Duration stall{};        // the consumer's wait, in all
  Duration stall_fetch{};  // ... while bytes of the head were missing
  Duration stall_first{};  // ... for the first group
};

class Feeder : public fetch::FetchSink {
 public:
  struct Options {
    uint64_t memory_bytes = 0;
    uint64_t capacity = 1024;                           // items in the ring
    int64_t skip_max = 0;                               // different samples that may be replaced
    Duration fetch_timeout = std::chrono::seconds(60);  // of one item, all attempts together
    Duration head_check = std::chrono::milliseconds(250);
    // Called when memory has been taken: what pools keep beside what is reserved may be so much.
    std::function<void(uint64_t bytes)> keep_idle;
  };
  using OnGroup = std::function<void(ReadyGroup)>;

  Feeder(const Dataset& dataset, Sampler& sampler, plan::Planner& planner, DecodePool& decode,
         std::shared_ptr<OutputPool> outputs, Executor& coordinator, const Options& options,
         OnGroup on_group);
  ~Feeder() override;
  // Before the first Pump. `memory` may be null: nothing is kept.
  void Attach(fetch::Fetcher* fetcher, fetch::MemoryTier* memory);

  // Asks for whatever may be asked for.
  void Pump();
  // The consumer waits for the next group.
  void HeadWaiting(uint64_t generation);
  // It took one, after computing for `step` and waiting for `wait`.
  void Taken(uint64_t generation, Duration step, Duration wait);
  // Drops everything and goes on from another position.
  void Restart(uint64_t generation, uint64_t epoch, uint64_t position);
  // Of an earlier part of the run: these count as replaced already.
  void SetReplaced(std::set<uint64_t> samples) { bad_samples_ = std::move(samples); }
  // Drops everything; `on_closed` runs when no fetch and no decode job is left.
  void Close(Task on_closed);

  const FeedStats& stats() const { return stats_; }
  const Budget& budget() const { return budget_; }
  uint64_t generation() const { return generation_; }

  void OnExtent(uint64_t tag, size_t index) override;
  void OnPart(uint64_t tag, const fetch::PieceReport& report, uint64_t bytes) override;
  void OnFetchDone(uint64_t tag, Status status) override;

 private:
  enum class State : uint8_t { kFree, kFetching, kFetchFailed, kDecoding, kDone };
  struct Group;
  struct Slot {
    State state = State::kFree;
    uint64_t sequence = 0;
    plan::WorkItem item;
    std::shared_ptr<SampleWork> work;
    Group* group = nullptr;  // null: dropped; only its bytes are still owed
    uint64_t raw_bytes = 0;  // reserved for it alone
    Time asked{};
    size_t bad_row = 0;           // of the work's rows: whose the error is
    std::vector<size_t> missing;  // per unit: extents not there yet
    size_t units_left = 0;        // not decoded
    size_t decoding = 0;          // units with the decode pool
    size_t parts = 0;             // that came
    bool in_fetcher = false;      // the fetcher holds its buffers
    bool fetching = false;        // ... and works on them
    bool demanded = false;
    Status status;  // its first error
  };
  struct Group {
    ReadyGroup ready;
    uint64_t number = 0;
    uint64_t output_bytes = 0;  // reserved; leaves the budget when taken
    size_t items = 0;
    size_t items_fetched = 0;
    size_t items_done = 0;
    size_t parts = 0;
    Duration fetch{};  // the slowest item's
    Duration decode{};
    bool complete = false;  // all its items were asked for
    std::vector<uint64_t> sequences;
    // Substitutes whose size is not what was planned for their rows: a batch of one row each, until
    // the group is complete and laid out anew. Part of output_bytes.
    struct Aside {
      std::shared_ptr<std::byte> block;
      std::shared_ptr<const BatchLayout> layout;
    };
    std::map<uint64_t, Aside> aside;  // by row
    std::shared_ptr<LateRows> late;   // where Dataset::sizes_late
  };

  Slot& SlotOf(uint64_t sequence) { return ring_[sequence % ring_.size()]; }
  uint64_t NewRawBytes(const plan::WorkItem& item) const;
  void HoldRaw(Slot& slot);
  void ReleaseRaw(Slot& slot);
  bool Grant(const plan::PlanItem& next);
  void StartItem(plan::PlanItem planned);
  Group& GroupFor(const plan::PlanItem& planned, const SampleWork& work);
  void Begin(Slot& slot, store::Priority priority);
  void StartUnit(Slot& slot, size_t unit);
  void TakeStarted(Slot& slot, const fetch::Fetcher::Started& started);
  struct Targets {
    RowTargets rows;
    std::vector<std::shared_ptr<const void>> keep;
  };
  static void NoteSamples(const SampleRows& rows, ReadyGroup& ready);
  Targets TargetsOf(const Slot& slot, const DecodeUnit& unit) const;
  void PlaceSubstitute(Slot& slot, size_t of_work);
  void LayOutAnew(Group& group);
  void LayOutLate(Group& group);
  void OnDecoded(uint64_t sequence, Status status, size_t row, Duration busy);
  void OnFetched(Slot& slot);
  void RetryAtDemand(Slot& slot);
  void FailSlot(Slot& slot, Status status, size_t row);
  static size_t FirstRowWithout(const Slot& slot);
  void FinishIfOver(Slot& slot);
  bool TrySubstitute(Slot& slot);
  void Free(Slot& slot, bool delivered);
  void HandOnReadyGroups();
  void DemandHead();
  void CheckHeadLater();
  void DropAll();
  void CheckClosed();

  const Dataset& dataset_;
  Sampler& sampler_;
  plan::Planner& planner_;
  DecodePool& decode_;
  std::shared_ptr<OutputPool> outputs_;
  Executor& coordinator_;
  Options options_;
  OnGroup on_group_;
  fetch::Fetcher* fetcher_ = nullptr;
  fetch::MemoryTier* memory_ = nullptr;
  Budget budget_;
  FeedStats stats_;
  fetch::CoalesceCost cost_;
  uint64_t generation_ = 0;
  std::shared_ptr<std::atomic<bool>> alive_;  // false: jobs of a dropped generation do nothing
  std::vector<Slot> ring_;
  size_t slots_used_ = 0;
  std::map<uint64_t, Group> groups_;      // in work, by number
  std::deque<uint64_t> handed_on_bytes_;  // output of groups handed on and not yet taken
  std::set<uint64_t> bad_samples_;        // that were replaced
  // Of data sets whose plans share extents: how many slots need each. It is reserved once.
  std::map<Extent, size_t> held_extents_;
  uint64_t groups_taken_ = 0;
  Time head_waiting_since_{};
  Time head_fetched_at_{};  // when the last byte of the waited-for group came
  Executor::TimerId head_timer_ = 0;
  bool pumping_ = false;
  bool closing_ = false;
  Task on_closed_;
};

}  // namespace forebay::feed
