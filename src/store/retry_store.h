// The one layer that retries: full jitter, bounded in attempts and in time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "store/decorator.h"
#include "store/retry_tokens.h"

namespace forebay::store {

struct RetryOptions {
  int max_attempts = 5;  // the first included
  Duration budget =
      std::chrono::seconds(60);  // all attempts and waits, unless a deadline is nearer; not of a
                                 // kBulk request that brings its own, by its bytes
  // The wait before attempt n + 1 is uniform in [0, first * 2^(n - 1)]. From the third failure on,
  // but for wrong answers, it is an outage that has to be sat out: [x / 2, x], x = first * 2^(3n -
  // 5). Never more than longest.
  Duration first_wait = std::chrono::milliseconds(50);
  Duration first_wait_throttled = std::chrono::milliseconds(150);  // after kResourceExhausted
  Duration longest_wait = std::chrono::seconds(10);
  uint64_t seed = 0;
  // Shared with others; null: retries are bounded by attempts and time alone.
  std::shared_ptr<RetryTokens> tokens;
  std::function<void(Verb, Code)> on_retry;  // executor's thread; for meters
};

// Repeats on kUnavailable, kResourceExhausted and kDataLoss. An attempt starts only after the one
// before it is fully over, so that one target serves them all. Every request gets a deadline here.
class RetryStore final : public Decorator<RetryStore> {
 public:
  RetryStore(std::shared_ptr<ObjectStore> inner, RetryOptions options)
      : Decorator(std::move(inner)),
        options_(std::move(options)),
        random_(DeriveKey(options_.seed, HashName("store retry"))) {}

  // Also between attempts.
  void Cancel(OpId op) override;
  void Promote(OpId op) override;

 private:
  friend class Decorator<RetryStore>;

  struct Op {
    virtual ~Op() = default;
    virtual void Attempt(RetryStore& store) = 0;
    virtual void RaiseToDemand() = 0;
    virtual void Fail(Status status) = 0;

    OpId id = 0;
    Verb verb = Verb::kRead;
    Time started;
    Time deadline;
    int attempts = 0;
    int tokens = 0;               // taken
    OpId inner_op = 0;            // of the attempt that runs; 0 between attempts
    Executor::TimerId timer = 0;  // of the wait between attempts
    Time again_at{};              // while it is set
    bool hastened = false;        // by a promotion
    bool cancelled = false;
    Status last;  // of the attempt before
  };
  template <class Request, class T>
  struct TypedOp;

  template <class Request, class T>
  OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done);
  void Launch(std::unique_ptr<Op> op);
  void AttemptFailed(Op& op, Status status);
  Duration WaitAfter(const Op& op, Code code);
  // Uniform, up to so long.
  Duration Between(Duration most);
  void AgainAt(Op& op, Time at);
  void Succeeded(const Op& op);
  std::string NewWriteId();
  std::unique_ptr<Op> Take(OpId id);

  const RetryOptions options_;
  Random random_;
  std::unordered_map<OpId, std::unique_ptr<Op>> ops_;
  OpId last_id_ = 0;
};

template <class Request, class T>
struct RetryStore::TypedOp final : RetryStore::Op {
  void Attempt(RetryStore& store) override {
    inner_op = (store.inner().*start)(request, [this, &store](Result<T> result) {
      inner_op = 0;
      if (!result.ok()) {
        store.AttemptFailed(*this, std::move(result).status());
        return;
      }
      if constexpr (requires { result->attempts; }) {
        result->attempts = attempts;
        result->total = store.executor().Now() - started;
      }
      const std::unique_ptr<Op> self = store.Take(id);
      store.Succeeded(*self);
      on_done(std::move(result));
    });
  }
  void RaiseToDemand() override { request.options.priority = Priority::kDemand; }
  void Fail(Status status) override { on_done(std::move(status)); }

  StartMethod<Request, T> start = nullptr;
  Request request;
  Callback<T> on_done;
};

template <class Request, class T>
ObjectStore::OpId RetryStore::RunOp(Verb verb, StartMethod<Request, T> start, Request request,
                                    Callback<T> on_done) {
  auto op = std::make_unique<TypedOp<Request, T>>();
  op->verb = verb;
  op->started = executor().Now();
  op->deadline = std::min(request.options.deadline, op->started + options_.budget);
  const bool transfer = request.options.priority == Priority::kBulk;
  if (transfer && request.options.deadline != kNever) op->deadline = request.options.deadline;
  op->start = start;
  op->request = std::move(request);
  op->request.options.deadline = op->deadline;
  if constexpr (requires { op->request.write_id; }) {
    if (op->request.write_id.empty()) op->request.write_id = NewWriteId();
  }
  op->on_done = std::move(on_done);
  Launch(std::move(op));
  return last_id_;
}

}  // namespace forebay::store
