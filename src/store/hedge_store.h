// A second request for a read that is later than its like usually are; the first good answer wins
// and the other request is cancelled. Below the retries and the limit: what it times is an attempt
// on the wire, without any queue of ours.
//
// The second lands in a buffer of its own. When it wins, its bytes are copied into the caller's
// target once the first request is fully over, so that nobody writes there any more.
#pragma once

#include <memory>
#include <optional>
#include <queue>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/slab_pool.h"
#include "store/decorator.h"
#include "store/hedge_policy.h"

namespace forebay::store {

struct HedgeCounters {
  uint64_t started = 0;       // second requests
  uint64_t won = 0;           // ... that were faster
  uint64_t wasted_bytes = 0;  // that arrived for the request that lost
  uint64_t refused = 0;       // late reads that got none: budget, memory, or the server's overload

  void Add(const HedgeCounters& other) {
    started += other.started;
    won += other.won;
    wasted_bytes += other.wasted_bytes;
    refused += other.refused;
  }
};

class HedgeStore final : public Decorator<HedgeStore> {
 public:
  // `counters` belongs to the executor's thread.
  HedgeStore(std::shared_ptr<ObjectStore> inner, HedgeOptions options,
             std::shared_ptr<HedgeCounters> counters);
  ~HedgeStore() override;

  void Cancel(OpId op) override;
  // From now on the bound of demand holds: a second request goes out at once when it has passed.
  void Promote(OpId op) override;
  const HedgePolicy& policy() const { return policy_; }

 private:
  friend class Decorator<HedgeStore>;

  struct Leg {
    OpId op = 0;
    Time started{};
    ReadProgress own;
    ReadProgress* told = nullptr;  // the caller's, in place of it
    bool running = false;
    std::optional<Result<ReadResult>> result;  // once it is over

    const ReadProgress& progress() const { return told != nullptr ? *told : own; }
  };
  struct Read {
    OpId id = 0;
    ReadRequest request;
    Callback<ReadResult> on_done;
    Leg first;
    Leg second;
    int seconds = 0;            // second requests so far
    SlabBuffer buffer;          // the second's
    uint64_t buffer_bytes = 0;  // counted in buffer_bytes_
    bool cancelled = false;
    bool refused = false;
    bool granted = false;  // another second request may go out
    Time due = kNever;     // when to look at it again
  };
  struct Due {
    Time at;
    OpId id;
    bool operator<(const Due& other) const {  // the top is the soonest
      return at != other.at ? at > other.at : id > other.id;
    }
  };

  template <class Request, class T>
  OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done);
  OpId StartHedged(ReadRequest request, Callback<ReadResult> on_done);
  void OnLeg(Read& read, Leg& leg, Result<ReadResult> result);
  void Learn(const Read& read, const Leg& leg);
  // Both are over.
  void Finish(Read& read);
  // Sends a second request, or says when to look again.
  void Look(Read& read);
  Time NextLook(const Read& read) const;
  // At its pace so far it will be there before a new request would.
  bool NearlyThere(const Leg& leg, uint64_t bytes, Duration usual);
  bool MaySend(const Read& read);
  // Of the bytes that a second request was allowed, so many have not come.
  void GiveBack(uint64_t bytes);
  void LookAt(Read& read, Time at);
  void LookAtAll();
  void SetTimer();
  void OnTimer();
  void StartSecond(Read& read);
  Read* Find(OpId id);

  const HedgeOptions options_;
  HedgePolicy policy_;
  const std::shared_ptr<HedgeCounters> counters_;
  const std::shared_ptr<SlabPool> pool_;
  uint64_t buffer_bytes_ = 0;
  // Reads have ids of our own, marked; every other verb passes with the inner one.
  std::unordered_map<OpId, std::unique_ptr<Read>> reads_;
  OpId last_id_ = OpId{1} << 63;
  std::priority_queue<Due> due_;  // may name reads that are over or due at another time
  Executor::TimerId timer_ = 0;
  Time timer_at_ = kNever;
};

template <class Request, class T>
ObjectStore::OpId HedgeStore::RunOp(Verb, StartMethod<Request, T> start, Request request,
                                    Callback<T> on_done) {
  if constexpr (std::is_same_v<T, ReadResult>) {
    return StartHedged(std::move(request), std::move(on_done));
  } else {
    return (inner().*start)(std::move(request), std::move(on_done));
  }
}

}  // namespace forebay::store
