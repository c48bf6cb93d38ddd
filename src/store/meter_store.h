// Counts what passes through a store, retries included, into a plain struct.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "store/decorator.h"
#include "store/hedge_store.h"

namespace forebay::store {

inline constexpr size_t kCodes = static_cast<size_t>(Code::kInternal) + 1;

// Times by powers of the square root of two from 100 us on: a quantile is exact to about 20%.
class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 48;

  void Add(Duration time);
  void Add(const LatencyHistogram& other);
  uint64_t count() const { return count_; }
  Duration sum() const { return sum_; }
  // The upper edge of the bucket that holds the quantile, 0 < q <= 1; zero when empty.
  Duration Quantile(double q) const;
  static Duration UpperEdge(size_t bucket);
  const std::array<uint64_t, kBuckets>& buckets() const { return buckets_; }

 private:
  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  Duration sum_{};
};

struct VerbCounters {
  std::array<uint64_t, kCodes> results{};  // finished operations by code, kOk included
  std::array<uint64_t, kCodes> retries{};  // attempts that failed and were repeated, by their code
  uint64_t bytes = 0;                      // of bodies, of operations that succeeded
  LatencyHistogram first_byte;             // reads: of the successful attempt
  LatencyHistogram total;                  // all attempts and waits, of those that succeeded

  void Add(const VerbCounters& other);
  uint64_t finished() const;
  uint64_t errors() const { return finished() - results[0]; }
  uint64_t retried() const;
};

struct StoreCounters {
  std::array<VerbCounters, kVerbs> verbs;
  uint64_t in_flight = 0;
  HedgeCounters hedges;

  VerbCounters& of(Verb verb) { return verbs[static_cast<size_t>(verb)]; }
  void Add(const StoreCounters& other);
  const VerbCounters& of(Verb verb) const { return verbs[static_cast<size_t>(verb)]; }
};

// The outermost decorator. `counters` belongs to the executor's thread: read or copy it there.
class MeterStore final : public Decorator<MeterStore> {
 public:
  MeterStore(std::shared_ptr<ObjectStore> inner, std::shared_ptr<StoreCounters> counters)
      : Decorator(std::move(inner)), counters_(std::move(counters)) {}

  void Cancel(OpId op) override { inner().Cancel(op); }
  void Promote(OpId op) override { inner().Promote(op); }
  const StoreCounters& counters() const { return *counters_; }

 private:
  friend class Decorator<MeterStore>;

  template <class Request>
  static uint64_t BodyBytes(const Request& request) {
    uint64_t bytes = 0;
    if constexpr (requires { request.body; }) {
      for (const ByteView piece : request.body) bytes += piece.size();
    }
    return bytes;
  }

  template <class Request, class T>
  OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done) {
    ++counters_->in_flight;
    const Time started = executor().Now();
    auto finish = [this, verb, started, sent = BodyBytes(request),
                   done = std::move(on_done)](Result<T> result) mutable {
      VerbCounters& counters = counters_->of(verb);
      --counters_->in_flight;
      ++counters.results[static_cast<size_t>(result.code())];
      if (result.ok()) {
        counters.bytes += sent;
        counters.total.Add(executor().Now() - started);
        if constexpr (std::is_same_v<T, ReadResult>) {
          counters.bytes += result->bytes;
          counters.first_byte.Add(result->first_byte);
        }
      }
      done(std::move(result));
    };
    return (inner().*start)(std::move(request), std::move(finish));
  }

  const std::shared_ptr<StoreCounters> counters_;
};

}  // namespace forebay::store
