// What every store over a network wears, from outside in: the meter, the retries, the limit, the
// hedges. The simulation puts on the same.
#pragma once

#include <cstdint>
#include <memory>

#include "store/hedge_policy.h"
#include "store/limit_store.h"
#include "store/meter_store.h"
#include "store/retry_store.h"

namespace forebay::store {

struct StackOptions {
  RetryOptions retry;  // its on_retry is ours
  LimitOptions limit;
  // Shared with other stores of the same host; null: one of its own, by `limit`.
  std::shared_ptr<Admission> admission;
  HedgeOptions hedge;
  bool bare = false;  // without limit and hedges: what a benchmark measures
};

std::shared_ptr<MeterStore> MakeStack(std::shared_ptr<ObjectStore> bare, StackOptions options);

}  // namespace forebay::store
