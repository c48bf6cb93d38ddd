#include "store/admission.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::store {
namespace {

constexpr uint64_t kBandwidthKey = HashName("bandwidth");
// When another process took the turn, or bytes, that this one waited for.
constexpr auto kAgain = std::chrono::milliseconds(1);

}  // namespace

Admission::Admission(Executor& executor, const LimitOptions& options,
                     std::shared_ptr<NodeLimits> limits)
    : executor_(executor),
      options_(options),
      limits_(std::move(limits)),
      cap_(options.in_flight_first, options.in_flight) {
  FB_ASSERT(options_.in_flight > options_.kept_for_demand);
  if (limits_ == nullptr || options_.bandwidth == 0) return;
  BandwidthState* state = limits_->BandwidthFor(kBandwidthKey, executor_.Now());
  if (state != nullptr) bandwidth_.emplace(*state, options_.bandwidth);
}

Admission::~Admission() {
  if (timer_ != 0 && executor_.InThread()) executor_.CancelTimer(timer_);
}

Admission::Prefix& Admission::PrefixOf(uint64_t key) {
  std::unique_ptr<Prefix>& slot = prefixes_[key];
  if (slot) return *slot;
  slot = std::make_unique<Prefix>();
  Prefix& made = *slot;
  if (limits_ != nullptr) {
    PaceState* state = limits_->PaceFor(key, executor_.Now());
    made.pace.emplace(state != nullptr ? *state : made.own);
  }
  if (prefixes_.size() > kPrefixesKept) {
    std::erase_if(prefixes_, [&](const auto& one) {
      return one.second.get() != &made && one.second->open == 0;
    });
  }
  return made;
}

bool Admission::HasPlace(Priority priority) const {
  const size_t kept = priority == Priority::kDemand ? 0 : options_.kept_for_demand;
  return in_flight_ + kept < std::min(cap_.cap(), options_.in_flight);
}

bool Admission::Enter(Entry& request, Status* why) {
  FB_ASSERT(executor_.InThread());
  request.order_ = ++last_order_;
  const Time now = executor_.Now();
  Prefix& prefix = PrefixOf(request.prefix);
  const auto& better = prefix.queues;
  const auto rank = static_cast<size_t>(request.priority);
  // Nobody who would go before it may be waiting for a turn of the same prefix.
  const bool first = std::all_of(better.begin(), better.begin() + static_cast<ptrdiff_t>(rank) + 1,
                                 [](const auto& queue) { return queue.empty(); });
  if (first && HasPlace(request.priority) && TryBegin(request, now)) return true;
  if (request.deadline <= now) {
    *why = Status(Code::kDeadlineExceeded, "the deadline had passed before it was sent");
    return false;
  }
  if (waiting_ >= options_.queue_limit) {
    *why = Status(Code::kResourceExhausted,
                  fmt::format("{} requests wait already", options_.queue_limit));
    return false;
  }
  ++waiting_;
  ++prefix.open;
  request.waits_ = true;
  prefix.queues[rank].insert({request.deadline, request.order_, &request});
  if (request.deadline != kNever) {
    request.timer_ = executor_.PostAt(request.deadline, [this, &request] {
      request.timer_ = 0;
      Unqueue(request);
      request.Refuse(Status(Code::kDeadlineExceeded,
                            "the deadline passed while the request waited for others to finish"));
    });
  }
  Admit();
  return true;
}

void Admission::Unqueue(Entry& request) {
  Prefix& prefix = *prefixes_.at(request.prefix);
  prefix.queues[static_cast<size_t>(request.priority)].erase(
      {request.deadline, request.order_, &request});
  if (request.timer_ != 0) executor_.CancelTimer(std::exchange(request.timer_, 0));
  request.waits_ = false;
  --prefix.open;
  --waiting_;
}

void Admission::Drop(Entry& request) {
  if (request.waits_) Unqueue(request);
}

void Admission::Promote(Entry& request) {
  if (!request.waits_ || request.priority == Priority::kDemand) {
    request.priority = Priority::kDemand;
    return;
  }
  auto& queues = prefixes_.at(request.prefix)->queues;
  const Key key{request.deadline, request.order_, &request};
  queues[static_cast<size_t>(request.priority)].erase(key);
  request.priority = Priority::kDemand;
  queues[static_cast<size_t>(Priority::kDemand)].insert(key);
  Admit();
}

bool Admission::TryBegin(Entry& request, Time now) {
  Prefix& prefix = *prefixes_.at(request.prefix);
  if (bandwidth_ && bandwidth_->ReadyAt(now) > now) return false;
  // Another process may have been faster in either.
  const bool takes = bandwidth_ && request.bytes > 0;
  if (takes && !bandwidth_->TryTake(request.bytes, now)) return false;
  if (prefix.pace) {
    request.phase_ = prefix.pace->TryStart(now);
    if (request.phase_ == 0) {
      if (takes) bandwidth_->GiveBack(request.bytes);
      return false;
    }
  }
  if (request.waits_) Unqueue(request);
  ++prefix.open;
  ++in_flight_;
  request.begun = true;
  request.Begin();
  return true;
}

void Admission::Leave(Entry& request, uint64_t moved, bool refused, uint64_t wasted) {
  FB_ASSERT(request.begun && in_flight_ > 0);
  request.begun = false;
  const Time now = executor_.Now();
  Prefix& prefix = *prefixes_.at(request.prefix);
  --prefix.open;
  if (prefix.pace) prefix.pace->OnAnswer(request.phase_, refused, now);
  const uint64_t used = moved + wasted;
  if (bandwidth_ && used < request.bytes) bandwidth_->GiveBack(request.bytes - used);
  // What waits for the pace or the bandwidth does not wait for the cap.
  const bool full = in_flight_ + options_.kept_for_demand >= cap_.cap();
  cap_.OnDone(now, moved, in_flight_, waiting_ > 0 && full);
  --in_flight_;
  Admit();
}

bool Admission::TakeSecond(uint64_t bytes) {
  return !bandwidth_ || bandwidth_->TryTake(bytes, executor_.Now());
}

void Admission::GiveBackSecond(uint64_t bytes) {
  if (bandwidth_) bandwidth_->GiveBack(bytes);
}

bool Admission::paced(uint64_t prefix) const {
  const auto found = prefixes_.find(prefix);
  return found != prefixes_.end() && found->second->pace && found->second->pace->paced();
}

Admission::Entry* Admission::Best(Time now, Time& later) {
  Entry* best = nullptr;
  for (const auto& [key, prefix] : prefixes_) {
    if (prefix->open == 0) continue;
    for (size_t rank = 0; rank < prefix->queues.size(); ++rank) {
      const std::set<Key>& queue = prefix->queues[rank];
      if (queue.empty()) continue;
      Entry* first = std::get<Entry*>(*queue.begin());
      if (!HasPlace(first->priority)) break;
      const Time ready = prefix->pace ? prefix->pace->ReadyAt(now) : now;
      if (ready > now) {
        later = std::min(later, ready);
        break;
      }
      const auto precedes = [](const Entry& a, const Entry& b) {
        return std::tie(a.priority, a.deadline, a.order_) <
               std::tie(b.priority, b.deadline, b.order_);
      };
      if (best == nullptr || precedes(*first, *best)) best = first;
      break;
    }
  }
  return best;
}

void Admission::Admit() {
  if (admitting_ || waiting_ == 0) return;
  admitting_ = true;
  const Time now = executor_.Now();
  Time later = kNever;
  while (waiting_ > 0) {
    Entry* best = Best(now, later);
    if (best == nullptr) break;
    if (bandwidth_ && bandwidth_->ReadyAt(now) > now) {
      later = std::min(later, bandwidth_->ReadyAt(now));
      break;
    }
    if (!TryBegin(*best, now)) {
      later = std::min(later, now + kAgain);
      break;
    }
  }
  admitting_ = false;
  if (later != kNever) WakeAt(later);
}

void Admission::WakeAt(Time at) {
  if (timer_ != 0 && timer_at_ <= at) return;
  if (timer_ != 0) executor_.CancelTimer(timer_);
  timer_at_ = at;
  timer_ = executor_.PostAt(at, [this] {
    timer_ = 0;
    Admit();
  });
}

}  // namespace forebay::store
