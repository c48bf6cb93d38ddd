// Sends a request when the host's admission lets it; until then it waits, and can be cancelled,
// promoted or run out of time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "store/admission.h"
#include "store/decorator.h"

namespace forebay::store {

class LimitStore final : public Decorator<LimitStore> {
 public:
  // `admission` may be shared with other stores of the same executor.
  LimitStore(std::shared_ptr<ObjectStore> inner, std::shared_ptr<Admission> admission);
  LimitStore(std::shared_ptr<ObjectStore> inner, const LimitOptions& options);

  void Cancel(OpId op) override;
  void Promote(OpId op) override;
  size_t in_flight() const { return admission_->in_flight(); }
  size_t waiting() const { return admission_->waiting(); }

 private:
  friend class Decorator<LimitStore>;

  struct Op : Admission::Entry {
    explicit Op(LimitStore& owner) : store(owner) {}
    virtual void RaiseToDemand() = 0;
    virtual void Fail(Status status) = 0;
    void Refuse(Status status) override;

    LimitStore& store;
    OpId id = 0;
    OpId inner_op = 0;  // once admitted
    bool over = false;  // its callback is on its way
  };
  template <class Request, class T>
  struct TypedOp;

  template <class Request, class T>
  OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done);
  void Launch(std::unique_ptr<Op> op);
  // Of the bucket and the first folder of the key: what S3 grants its requests to, about.
  uint64_t PrefixOf(std::string_view key) const;
  // Ends one that was not admitted, in a turn of its own.
  void FailLater(Op& op, Status status);
  std::unique_ptr<Op> Take(OpId id);

  template <class Request>
  static uint64_t BytesOf(const Request& request) {
    uint64_t bytes = 0;
    if constexpr (requires { request.body; }) {
      for (const ByteView piece : request.body) bytes += piece.size();
    }
    if constexpr (std::is_same_v<Request, ReadRequest>) bytes += request.range.size();
    return bytes;
  }

  const std::shared_ptr<Admission> admission_;
  std::unordered_map<OpId, std::unique_ptr<Op>> ops_;
  OpId last_id_ = 0;
};

template <class Request, class T>
struct LimitStore::TypedOp final : LimitStore::Op {
  using Op::Op;
  void Begin() override {
    if constexpr (kHasProgress) {
      if (request.progress == nullptr) request.progress = &own;
      *request.progress = {};
      progress = request.progress;
    }
    inner_op = (store.inner().*start)(std::move(request), [this](Result<T> result) {
      const std::unique_ptr<Op> self = store.Take(id);
      uint64_t moved = result.ok() ? bytes : 0;
      if constexpr (std::is_same_v<T, ReadResult>) moved = result.ok() ? result->bytes : 0;
      // What had come, or gone, of one that failed has used its bandwidth all the same.
      uint64_t wasted = 0;
      if constexpr (kHasProgress) wasted = result.ok() ? 0 : progress->bytes;
      const std::shared_ptr<Admission> admission = store.admission_;
      const bool refused = result.code() == Code::kResourceExhausted;
      admission->Leave(*this, moved, refused, wasted);
      on_done(std::move(result));
    });
  }
  void RaiseToDemand() override { request.options.priority = Priority::kDemand; }
  void Fail(Status status) override { on_done(std::move(status)); }

  static constexpr bool kHasProgress = requires(Request& one) { one.progress; };
  using Progress =
      std::conditional_t<std::is_same_v<Request, ReadRequest>, ReadProgress, WriteProgress>;

  StartMethod<Request, T> start = nullptr;
  Request request;
  Callback<T> on_done;
  Progress own;  // where the caller wants to know of none
  const Progress* progress = nullptr;
};

template <class Request, class T>
ObjectStore::OpId LimitStore::RunOp(Verb, StartMethod<Request, T> start, Request request,
                                    Callback<T> on_done) {
  auto op = std::make_unique<TypedOp<Request, T>>(*this);
  op->priority = request.options.priority;
  op->deadline = request.options.deadline;
  op->bytes = BytesOf(request);
  if constexpr (requires { request.key; }) {
    op->prefix = PrefixOf(request.key);
  } else {
    op->prefix = PrefixOf(request.prefix);
  }
  op->start = start;
  op->request = std::move(request);
  op->on_done = std::move(on_done);
  Launch(std::move(op));
  return last_id_;
}

}  // namespace forebay::store
