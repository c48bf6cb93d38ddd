// Admits a fixed number of requests at a time; the rest wait by priority. Two permits are kept for
// demand, so that prefetch in flight never makes a waiting step queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

#include "store/decorator.h"

namespace forebay::store {

struct LimitOptions {
  size_t in_flight = 128;  // at most; more than kept_for_demand
  size_t kept_for_demand = 2;
  size_t queue_limit = 64 * 1024;  // waiting requests, beyond which kResourceExhausted
};

class LimitStore final : public Decorator<LimitStore> {
 public:
  LimitStore(std::shared_ptr<ObjectStore> inner, LimitOptions options);

  void Cancel(OpId op) override;
  void Promote(OpId op) override;
  size_t in_flight() const { return in_flight_; }
  size_t waiting() const { return waiting_; }

 private:
  friend class Decorator<LimitStore>;

  struct Op {
    virtual ~Op() = default;
    virtual void Begin(LimitStore& store) = 0;
    virtual void RaiseToDemand() = 0;
    virtual void Fail(Status status) = 0;

    OpId id = 0;
    Priority priority = Priority::kDemand;
    Executor::TimerId timer = 0;  // the deadline, while it waits
    OpId inner_op = 0;            // once admitted
    bool over = false;            // its callback is on its way
  };
  template <class Request, class T>
  struct TypedOp;
  static constexpr size_t kPriorities = 4;

  template <class Request, class T>
  OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done);
  void Enqueue(std::unique_ptr<Op> op, Time deadline);
  bool MayBegin(Priority priority) const;
  void Begin(Op& op);
  // Begins what may begin, best priority first.
  void Admit();
  // Ends one that was not admitted.
  void Refuse(Op& op, Status status);
  void Finished();
  std::unique_ptr<Op> Take(OpId id);

  const LimitOptions options_;
  std::unordered_map<OpId, std::unique_ptr<Op>> ops_;
  std::array<std::deque<OpId>, kPriorities> queues_;  // may name ops that have ended meanwhile
  size_t in_flight_ = 0;
  size_t waiting_ = 0;
  OpId last_id_ = 0;
};

template <class Request, class T>
struct LimitStore::TypedOp final : LimitStore::Op {
  void Begin(LimitStore& store) override {
    inner_op = (store.inner().*start)(std::move(request), [this, &store](Result<T> result) {
      const std::unique_ptr<Op> self = store.Take(id);
      store.Finished();
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
ObjectStore::OpId LimitStore::RunOp(Verb, StartMethod<Request, T> start, Request request,
                                    Callback<T> on_done) {
  auto op = std::make_unique<TypedOp<Request, T>>();
  op->priority = request.options.priority;
  const Time deadline = request.options.deadline;
  op->start = start;
  op->request = std::move(request);
  op->on_done = std::move(on_done);
  Enqueue(std::move(op), deadline);
  return last_id_;
}

}  // namespace forebay::store
