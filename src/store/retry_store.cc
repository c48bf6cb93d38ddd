#include "store/retry_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"

namespace forebay::store {
namespace {

bool IsWorthAnother(Code code) {
  return code == Code::kUnavailable || code == Code::kResourceExhausted || code == Code::kDataLoss;
}

// As the AWS SDKs count: what may be an outage costs more than what the server answered.
int TokensFor(Code code) { return code == Code::kUnavailable ? 10 : 5; }

// Whoever fails so often meets no accident but an outage, of seconds: a server that is restarted, a
// route that changes.
constexpr int kOutageFrom = 3;
constexpr int kOutageDoublings = 4;

double Milliseconds(Duration time) { return static_cast<double>(time.count()) * 1e-6; }

}  // namespace

void RetryStore::Launch(std::unique_ptr<Op> op) {
  FB_ASSERT(executor().InThread());
  op->id = ++last_id_;
  Op& kept = *(ops_[op->id] = std::move(op));
  kept.attempts = 1;
  kept.Attempt(*this);
}

std::unique_ptr<RetryStore::Op> RetryStore::Take(OpId id) {
  auto node = ops_.extract(id);
  FB_ASSERT(!node.empty());
  return std::move(node.mapped());
}

Duration RetryStore::WaitAfter(const Op& op, Code code) {
  const Duration first =
      code == Code::kResourceExhausted ? options_.first_wait_throttled : options_.first_wait;
  // A wrong answer is no outage, however often it comes.
  const bool outage = code != Code::kDataLoss && op.attempts >= kOutageFrom;
  const int doublings =
      outage ? kOutageDoublings + 3 * (op.attempts - kOutageFrom) : op.attempts - 1;
  const Duration most =
      std::min(options_.longest_wait, first * (int64_t{1} << std::min(doublings, 20)));
  const Duration least = outage ? most / 2 : Duration{};
  return least + Between(most - least);
}

Duration RetryStore::Between(Duration most) {
  return Duration(static_cast<int64_t>(static_cast<double>(most.count()) * random_.NextDouble()));
}

std::string RetryStore::NewWriteId() {
  const uint64_t high = random_.Next();
  return fmt::format("{:016x}{:016x}", high, random_.Next());
}

void RetryStore::Succeeded(const Op& op) {
  if (options_.tokens) options_.tokens->GiveBack(std::max(op.tokens, 1));
}

void RetryStore::AttemptFailed(Op& op, Status status) {
  status = std::move(status).WithDetail({.attempt = op.attempts});
  const Code code = status.code();
  const Time now = executor().Now();
  bool again = IsWorthAnother(code) && !op.cancelled && op.attempts < options_.max_attempts;
  Duration wait{};
  if (again) {
    wait = WaitAfter(op, code);
    const int tokens = options_.tokens ? TokensFor(code) : 0;
    if (tokens > 0) wait = std::max(wait, options_.tokens->Take(tokens, now));
    again = now + wait < op.deadline;
    if (again) {
      op.tokens += tokens;
    } else if (tokens > 0) {
      options_.tokens->GiveBack(tokens);
    }
  }
  if (again) {
    if (options_.on_retry) options_.on_retry(op.verb, code);
    op.last = std::move(status);
    AgainAt(op, now + wait);
    return;
  }
  if (op.attempts > 1) {
    std::string context =
        fmt::format("after {} attempts in {:.0f} ms", op.attempts, Milliseconds(now - op.started));
    // Out of time says little by itself: what went wrong before is the cause.
    if (code == Code::kDeadlineExceeded && !op.last.ok()) {
      context += fmt::format(" (the one before: {})", op.last.message());
    }
    status = std::move(status).WithContext(context);
  }
  const std::unique_ptr<Op> self = Take(op.id);
  self->Fail(std::move(status));
}

void RetryStore::AgainAt(Op& op, Time at) {
  op.again_at = at;
  op.timer = executor().PostAt(at, [this, &op] {
    op.timer = 0;
    ++op.attempts;
    op.Attempt(*this);
  });
}

void RetryStore::Promote(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end()) return;
  Op& op = *found->second;
  op.RaiseToDemand();  // of the attempts to come
  if (op.inner_op != 0) inner().Promote(op.inner_op);
  // Somebody waits for it now, and it waits for an outage that may be over: it looks once.
  if (op.timer == 0 || std::exchange(op.hastened, true)) return;
  const Time soon = executor().Now() + Between(options_.first_wait);
  if (soon >= op.again_at) return;
  executor().CancelTimer(op.timer);
  AgainAt(op, soon);
}

void RetryStore::Cancel(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end() || found->second->cancelled) return;
  Op& op = *found->second;
  op.cancelled = true;
  if (op.inner_op != 0) {
    inner().Cancel(op.inner_op);
    return;
  }
  // Between attempts: nothing is in flight.
  executor().CancelTimer(std::exchange(op.timer, 0));
  executor().Post([this, id] {
    const std::unique_ptr<Op> self = Take(id);
    self->Fail(Status(Code::kCancelled, fmt::format("cancelled between attempts; the last: {}",
                                                    self->last.message())));
  });
}

}  // namespace forebay::store
