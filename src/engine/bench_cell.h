// One cell of a benchmark: so many requests of a store, so many of them at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "engine/bench_positions.h"
#include "forebay/bench.h"
#include "store/object_store.h"

namespace forebay::engine {

struct BenchWork {
  BenchCell cell;
  // Of gets.
  const std::vector<store::ObjectInfo>* objects = nullptr;
  std::vector<BenchPlace> places;
  // Of puts.
  std::vector<std::string> keys;
  // Page-aligned, in_flight x range_bytes for gets; range_bytes, which every put sends, for puts.
  MutableBytes buffer;
};

struct BytesAt {
  double at_s = 0;
  uint64_t bytes = 0;
};

// The rate between the first of `samples` after a tenth of their time and the last one; where there
// are no two such, that of all `bytes` in `wall_s`.
double SteadyRate(std::span<const BytesAt> samples, uint64_t bytes, double wall_s);

// The counters of the retries and of throttled attempts are the caller's to read. Errors:
// kCancelled; the first failure, when the first 100 requests all failed.
Result<BenchRun> RunBenchWork(store::ObjectStore& store, BenchWork work, Duration timeout,
                              const std::function<bool(const BenchProgress&)>& on_progress);

}  // namespace forebay::engine
