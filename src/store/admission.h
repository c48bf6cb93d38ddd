// Who may send a request to a host now: a cap on those in flight, found by what they bring; the
// pace of each bucket's prefixes; a bandwidth. The rest wait, best priority first and inside it by
// deadline. All limit stores of one host share it. One owner thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "store/flight_cap.h"
#include "store/node_limits.h"
#include "store/object_store.h"

namespace forebay::store {

struct LimitOptions {
  size_t in_flight = 512;       // at most; more than kept_for_demand
  size_t in_flight_first = 32;  // at the start and after a pause; more as it pays
  size_t kept_for_demand = 2;
  size_t queue_limit = 64 * 1024;  // waiting requests, beyond which kResourceExhausted
  uint64_t bandwidth = 0;          // bytes a second of GET and PUT, of all who share; 0: no limit
  std::string host;                // whose prefixes these are, among those who share
};

class Admission {
 public:
  // One request, owned by whoever sends it. Begin and Refuse may run inside any call but Enter's
  // Refuse, which comes in a turn of its own.
  class Entry {
   public:
    virtual ~Entry() = default;
    virtual void Begin() = 0;
    virtual void Refuse(Status status) = 0;  // it will not begin

    Priority priority = Priority::kDemand;
    Time deadline = kNever;
    uint64_t prefix = 0;  // of bucket and key
    uint64_t bytes = 0;   // that it moves, both ways
    bool begun = false;

   private:
    friend class Admission;
    uint64_t order_ = 0;
    uint64_t phase_ = 0;
    Executor::TimerId timer_ = 0;  // the deadline, while it waits
    bool waits_ = false;
  };

  // `limits` may be null: no pace and no bandwidth is kept.
  Admission(Executor& executor, const LimitOptions& options, std::shared_ptr<NodeLimits> limits);
  ~Admission();

  // Begins at once or waits. False: too many wait, or its deadline is over: `why` says it.
  bool Enter(Entry& request, Status* why);
  void Promote(Entry& request);
  // It waits no more, and will not begin.
  void Drop(Entry& request);
  // One that has begun is over: so many bytes it has brought, and so many more went over the wire
  // for nothing. What it had taken of the bandwidth beyond both is given back.
  void Leave(Entry& request, uint64_t moved, bool refused, uint64_t wasted = 0);
  // For a second request beside one that has begun: it takes no place, but bandwidth. False: not
  // now.
  bool TakeSecond(uint64_t bytes);
  // So much of what second requests took was not used.
  void GiveBackSecond(uint64_t bytes);

  const LimitOptions& options() const { return options_; }
  size_t in_flight() const { return in_flight_; }
  size_t waiting() const { return waiting_; }
  size_t cap() const { return cap_.cap(); }
  bool paced(uint64_t prefix) const;

 private:
  using Key = std::tuple<Time, uint64_t, Entry*>;  // deadline, order
  struct Prefix {
    PaceState own{};  // when the table has no room
    std::optional<Pace> pace;
    std::array<std::set<Key>, 4> queues;
    size_t open = 0;  // requests that wait or fly
  };
  static constexpr size_t kPrefixesKept = 256;

  Prefix& PrefixOf(uint64_t key);
  bool HasPlace(Priority priority) const;
  void Unqueue(Entry& request);
  // Begins what may begin.
  void Admit();
  // The best that waits and may go; null: none. `later`: when one may, at the soonest.
  Entry* Best(Time now, Time& later);
  bool TryBegin(Entry& request, Time now);
  void WakeAt(Time at);

  Executor& executor_;
  const LimitOptions options_;
  const std::shared_ptr<NodeLimits> limits_;
  FlightCap cap_;
  std::optional<Bandwidth> bandwidth_;
  std::unordered_map<uint64_t, std::unique_ptr<Prefix>> prefixes_;
  size_t in_flight_ = 0;
  size_t waiting_ = 0;
  uint64_t last_order_ = 0;
  bool admitting_ = false;
  Executor::TimerId timer_ = 0;
  Time timer_at_ = kNever;
};

}  // namespace forebay::store
