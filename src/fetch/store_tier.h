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
  struct Options {
    // Demand replaces an attempt that has been out for longer than this, and for longer than
    // `replace_after_means` times what a read takes on average: starting over an attempt that is
    // slow but alive costs more than it gains.
    Duration replace_after = std::chrono::milliseconds(1500);
    double replace_after_means = 8;
  };
  // `objects` is what extents' object indices point into.
  StoreTier(std::shared_ptr<store::ObjectStore> store,
            std::shared_ptr<const std::vector<ObjectVersion>> objects, Executor& coordinator,
            Options options);
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
  Duration ReplaceAfter() const;

  std::shared_ptr<store::ObjectStore> store_;
  std::shared_ptr<const std::vector<ObjectVersion>> objects_;
  Executor& coordinator_;
  Options options_;
  double mean_read_s_ = 0;  // of the recent reads
  Ticket next_ticket_ = 1;
  struct Open {
    std::shared_ptr<Group> group;  // lives on the store's thread
    TierSink* sink = nullptr;
  };
  std::unordered_map<Ticket, Open> open_;
  std::shared_ptr<StoreTier*> self_;  // null once destroyed; answers that arrive later are dropped
};

}  // namespace forebay::fetch
