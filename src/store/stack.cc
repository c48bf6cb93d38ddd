#include "store/stack.h"

#include <utility>

#include "store/hedge_store.h"

namespace forebay::store {

std::shared_ptr<MeterStore> MakeStack(std::shared_ptr<ObjectStore> bare, StackOptions options) {
  auto counters = std::make_shared<StoreCounters>();
  options.retry.on_retry = [counters](Verb verb, Code code) {
    ++counters->of(verb).retries[static_cast<size_t>(code)];
  };
  std::shared_ptr<ObjectStore> store = std::move(bare);
  if (!options.bare) {
    std::shared_ptr<Admission> admission = std::move(options.admission);
    if (!admission) {
      admission =
          std::make_shared<Admission>(store->executor(), options.limit, NodeLimits::OfProcess());
    }
    options.hedge.may_send = [admission](uint64_t bytes) { return admission->TakeSecond(bytes); };
    options.hedge.give_back = [admission](uint64_t bytes) { admission->GiveBackSecond(bytes); };
    store =
        std::make_shared<HedgeStore>(std::move(store), options.hedge,
                                     std::shared_ptr<HedgeCounters>(counters, &counters->hedges));
    store = std::make_shared<LimitStore>(std::move(store), std::move(admission));
  }
  store = std::make_shared<RetryStore>(std::move(store), std::move(options.retry));
  return std::make_shared<MeterStore>(std::move(store), std::move(counters));
}

}  // namespace forebay::store
