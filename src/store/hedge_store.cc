#include "store/hedge_store.h"

#include <algorithm>

#include "base/assert.h"

namespace forebay::store {
namespace {

constexpr ObjectStore::OpId kOwnIds = ObjectStore::OpId{1} << 63;
constexpr int kSecondsMax = 3;  // those that fail or are lost in their turn included

// Another request would be told the same.
bool IsFinal(Code code) {
  return code == Code::kNotFound || code == Code::kPermissionDenied ||
         code == Code::kPreconditionFailed || code == Code::kInvalidArgument ||
         code == Code::kUnimplemented;
}

}  // namespace

HedgeStore::HedgeStore(std::shared_ptr<ObjectStore> inner, HedgeOptions options,
                       std::shared_ptr<HedgeCounters> counters)
    : Decorator(std::move(inner)),
      options_(options),
      policy_(options),
      counters_(std::move(counters)),
      pool_(SlabPool::Make()) {}

HedgeStore::~HedgeStore() {
  if (timer_ != 0 && executor().InThread()) executor().CancelTimer(timer_);
}

ObjectStore::OpId HedgeStore::StartHedged(ReadRequest request, Callback<ReadResult> on_done) {
  const OpId id = ++last_id_;
  Read& read = *(reads_[id] = std::make_unique<Read>());
  read.id = id;
  read.request = std::move(request);
  read.on_done = std::move(on_done);
  read.first.started = executor().Now();
  read.first.running = true;
  policy_.OnStart();
  ReadRequest first = read.request;
  read.first.told = first.progress;
  if (first.progress == nullptr) first.progress = &read.first.own;
  read.first.op = inner().StartRead(std::move(first), [this, &read](Result<ReadResult> result) {
    OnLeg(read, read.first, std::move(result));
  });
  LookAt(read, NextLook(read));
  return id;
}

void HedgeStore::Learn(const Read& read, const Leg& leg) {
  policy_.OnAnswer(leg.result->code() == Code::kResourceExhausted);
  const Time now = executor().Now();
  const uint64_t bytes = read.request.range.size();
  const Time at = leg.progress().first_byte;
  if (leg.result->ok()) {
    const uint64_t lessons = policy_.lessons();
    policy_.OnRead(bytes, (at == Time{} ? now : at) - leg.started, now - leg.started);
    if (policy_.lessons() != lessons) LookAtAll();
  } else if (leg.result->code() == Code::kCancelled && !read.cancelled && &leg == &read.first) {
    // How long it ran on beyond the bound is the second's doing.
    policy_.OnGaveWay(bytes, at == Time{} ? Duration{} : at - leg.started,
                      read.second.started - leg.started);
  }
}

void HedgeStore::OnLeg(Read& read, Leg& leg, Result<ReadResult> result) {
  leg.running = false;
  leg.result = std::move(result);
  Learn(read, leg);
  const uint64_t size = read.request.range.size();
  if (&leg == &read.second) GiveBack(size - std::min(size, leg.progress().bytes));
  Leg& other = &leg == &read.first ? read.second : read.first;
  if (!other.running) {
    Finish(read);
    return;
  }
  const bool decides = leg.result->ok() || (&leg == &read.first && IsFinal(leg.result->code()));
  if (decides) {
    inner().Cancel(other.op);
  } else if (&leg == &read.second) {
    counters_->wasted_bytes += leg.progress().bytes;
    if (!read.cancelled) LookAt(read, read.granted ? executor().Now() : NextLook(read));
  }
}

void HedgeStore::Finish(Read& read) {
  const bool second_wins =
      !read.first.result->ok() && read.second.result.has_value() && read.second.result->ok();
  Leg& winner = second_wins ? read.second : read.first;
  if (second_wins) {
    ++counters_->won;
    counters_->wasted_bytes += read.first.progress().bytes;
    // Whoever counts the read by its result counts the second's bytes, which are counted already.
    const uint64_t brought = (*winner.result)->bytes;
    GiveBack(brought - std::min(brought, read.first.progress().bytes));
    size_t at = 0;
    for (const MutableBytes piece : read.request.target) {
      const size_t n = std::min<uint64_t>(piece.size(), (*winner.result)->bytes - at);
      if (n > 0) read.buffer.CopyOut(at, piece.first(n));
      at += n;
    }
    (*winner.result)->hedged = true;
  } else if (read.first.result->ok() && read.second.result.has_value()) {
    counters_->wasted_bytes += read.second.progress().bytes;
  }
  if (read.granted) {  // for a second request that is not needed any more
    policy_.GiveBack();
    GiveBack(read.request.range.size());
  }
  buffer_bytes_ -= read.buffer_bytes;
  const auto self = reads_.extract(read.id);
  read.on_done(*std::move(winner.result));
}

HedgeStore::Read* HedgeStore::Find(OpId id) {
  const auto found = reads_.find(id);
  return found == reads_.end() || found->second->cancelled ? nullptr : found->second.get();
}

void HedgeStore::Cancel(OpId id) {
  FB_ASSERT(executor().InThread());
  if (id < kOwnIds) {
    inner().Cancel(id);
    return;
  }
  Read* read = Find(id);
  if (read == nullptr) return;
  read->cancelled = true;
  read->due = kNever;
  if (read->first.running) inner().Cancel(read->first.op);
  if (read->second.running) inner().Cancel(read->second.op);
}

void HedgeStore::Promote(OpId id) {
  FB_ASSERT(executor().InThread());
  if (id < kOwnIds) {
    inner().Promote(id);
    return;
  }
  Read* read = Find(id);
  if (read == nullptr) return;
  read->request.options.priority = Priority::kDemand;
  if (read->first.running) inner().Promote(read->first.op);
  if (read->second.running) inner().Promote(read->second.op);
  Look(*read);
}

Time HedgeStore::NextLook(const Read& read) const {
  const bool demand = read.request.options.priority == Priority::kDemand;
  const uint64_t bytes = read.request.range.size();
  const Leg& leg = read.second.running ? read.second : read.first;
  const bool waits = leg.progress().first_byte == Time{};
  return leg.started +
         (waits ? policy_.FirstByteBound(bytes, demand) : policy_.TotalBound(bytes, demand));
}

bool HedgeStore::NearlyThere(const Leg& leg, uint64_t bytes, Duration usual) {
  if (!leg.running || leg.progress().bytes == 0) return false;
  const double left = static_cast<double>(bytes - std::min(bytes, leg.progress().bytes)) /
                      static_cast<double>(leg.progress().bytes);
  const auto so_far = static_cast<double>((executor().Now() - leg.progress().first_byte).count());
  return so_far * left < static_cast<double>(usual.count());
}

void HedgeStore::Look(Read& read) {
  // Nothing is to be decided where one of the two has its answer.
  if (!read.first.running && !read.second.running) return;
  if (read.first.result.has_value() && read.first.result->ok()) return;
  if (read.second.result.has_value() && read.second.result->ok()) return;
  const Time now = executor().Now();
  const Time next = NextLook(read);
  if (next > now) {
    LookAt(read, next);
    return;
  }
  const uint64_t bytes = read.request.range.size();
  const Duration usual = std::max(policy_.UsualTotal(bytes), options_.least / 2);
  if (NearlyThere(read.first, bytes, usual) || NearlyThere(read.second, bytes, usual)) {
    LookAt(read, now + usual);
    return;
  }
  if (!read.granted && !MaySend(read)) {
    if (!read.refused) ++counters_->refused;
    read.refused = true;
    LookAt(read, now + usual);  // there may be room then
    return;
  }
  if (read.second.running) {
    // Lost as well: another takes its place, and its buffer, once it is over.
    read.granted = true;
    read.due = kNever;
    inner().Cancel(read.second.op);
    return;
  }
  read.granted = false;
  StartSecond(read);
}

bool HedgeStore::MaySend(const Read& read) {
  if (read.seconds >= kSecondsMax) return false;
  const uint64_t bytes = read.request.range.size();
  const uint64_t takes = SlabsFor(bytes) * kSlabBytes;
  if (read.buffer_bytes == 0 && takes > options_.buffer_bytes - buffer_bytes_) return false;
  const bool demand = read.request.options.priority == Priority::kDemand;
  if (!policy_.Spend(bytes, demand, executor().Now() - read.first.started)) return false;
  if (!options_.may_send || options_.may_send(bytes)) return true;
  policy_.GiveBack();
  return false;
}

void HedgeStore::GiveBack(uint64_t bytes) {
  if (options_.give_back && bytes > 0) options_.give_back(bytes);
}

void HedgeStore::StartSecond(Read& read) {
  const uint64_t bytes = read.request.range.size();
  if (read.buffer_bytes == 0) {
    read.buffer_bytes = SlabsFor(bytes) * kSlabBytes;
    buffer_bytes_ += read.buffer_bytes;
    read.buffer = pool_->Take(bytes);
  }
  ++counters_->started;
  ++read.seconds;
  read.second = Leg{};
  read.second.started = executor().Now();
  read.second.running = true;
  LookAt(read, NextLook(read));
  ReadRequest second = read.request;
  second.target = read.buffer.Pieces(0, bytes);
  second.progress = &read.second.own;
  second.options.other_address = true;
  read.second.op = inner().StartRead(std::move(second), [this, &read](Result<ReadResult> result) {
    OnLeg(read, read.second, std::move(result));
  });
}

void HedgeStore::LookAt(Read& read, Time at) {
  read.due = at;
  if (at == kNever) return;
  due_.push({at, read.id});
  if (at < timer_at_) SetTimer();
}

// Those that began when less was known.
void HedgeStore::LookAtAll() {
  for (const auto& [id, read] : reads_) {
    if (read->due != kNever) LookAt(*read, std::min(read->due, NextLook(*read)));
  }
}

// One timer for all: at the soonest time at which a read that still runs is due.
void HedgeStore::SetTimer() {
  while (!due_.empty()) {
    const auto found = reads_.find(due_.top().id);
    if (found != reads_.end() && found->second->due == due_.top().at) break;
    due_.pop();
  }
  if (timer_ != 0) executor().CancelTimer(std::exchange(timer_, 0));
  timer_at_ = kNever;
  if (due_.empty()) return;
  timer_at_ = due_.top().at;
  timer_ = executor().PostAt(timer_at_, [this] {
    timer_ = 0;
    OnTimer();
  });
}

void HedgeStore::OnTimer() {
  const Time now = executor().Now();
  while (!due_.empty() && due_.top().at <= now) {
    const Due due = due_.top();
    due_.pop();
    const auto found = reads_.find(due.id);
    if (found == reads_.end() || found->second->due != due.at) continue;
    Look(*found->second);
  }
  SetTimer();
}

}  // namespace forebay::store
