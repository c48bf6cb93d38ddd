// The last tier: object storage. A read of several pieces crosses to the store's thread once, and
// its completions come back together, or one by one while the consumer waits for them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/object_table.h"
#include "fetch/tier.h"

namespace forebay::fetch {

// The store of the objects from this one on.
struct StoreOfObjects {
  uint32_t first_object = 0;
  std::shared_ptr<store::ObjectStore> store;
};

class StoreTier : public Tier {
 public:
  // `objects` is what extents' object indices point into. `stores` by first object, the first from
  // 0; all of them live on one executor.
  StoreTier(std::vector<StoreOfObjects> stores, std::shared_ptr<const ObjectTable> objects,
            Executor& coordinator);
  ~StoreTier() override;

  const char* name() const override { return "store"; }
  Ticket StartRead(std::vector<Piece> pieces, Priority priority, Time deadline,
                   TierSink* sink) override;
  void Promote(Ticket ticket) override;
  void Cancel(Ticket ticket) override;

 private:
  class Group;
  struct Answer;
  Executor& StoreExecutor() const { return stores_->front().store->executor(); }
  void Deliver(Ticket ticket, std::vector<Answer> answers, bool last);

  std::shared_ptr<const std::vector<StoreOfObjects>> stores_;
  std::shared_ptr<const ObjectTable> objects_;
  Executor& coordinator_;
  Ticket next_ticket_ = 1;
  struct Open {
    std::shared_ptr<Group> group;  // lives on the store's thread
    TierSink* sink = nullptr;
  };
  std::unordered_map<Ticket, Open> open_;
  std::shared_ptr<StoreTier*> self_;  // null once destroyed; answers that arrive later are dropped
};

}  // namespace forebay::fetch
