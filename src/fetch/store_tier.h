// The last tier: object storage. A read of several pieces crosses to the store's thread once, and
// its completions come back together, or one by one while the consumer waits for them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "fetch/tier.h"

namespace forebay::fetch {

class StoreTier : public Tier {
 public:
  // `objects` is what extents' object indices point into.
  StoreTier(std::shared_ptr<store::ObjectStore> store,
            std::shared_ptr<const std::vector<ObjectVersion>> objects, Executor& coordinator);
  ~StoreTier() override;

  const char* name() const override { return "store"; }
  Ticket StartRead(std::vector<Piece> pieces, Priority priority, Time deadline,
                   TierSink* sink) override;
  void Promote(Ticket ticket) override;
  void Cancel(Ticket ticket) override;

 private:
  class Group;
  struct Answer;
  void Deliver(Ticket ticket, std::vector<Answer> answers, bool last);

  std::shared_ptr<store::ObjectStore> store_;
  std::shared_ptr<const std::vector<ObjectVersion>> objects_;
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
