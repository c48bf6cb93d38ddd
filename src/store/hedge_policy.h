// When a read is late enough for a second request, and whether one may be spent on it: learned
// from the reads themselves, by class of size. No requests here, no clock, no memory of single
// reads. One owner thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "store/object_store.h"
#include "store/time_quantiles.h"

namespace forebay::store {

struct HedgeOptions {
  double budget = 0.03;                            // second requests a read, in the long run
  double burst = 8;                                // so many more at once
  uint64_t buffer_bytes = 32ULL << 20;             // of all second requests together
  Duration least = std::chrono::milliseconds(50);  // nothing is late before
  Duration unlearned = std::chrono::seconds(1);    // the bound until a few reads were seen
  std::function<bool(uint64_t)> may_send;   // false: so many bytes more may not be asked for now
  std::function<void(uint64_t)> give_back;  // of those, so many have not come
};

class HedgePolicy {
 public:
  explicit HedgePolicy(const HedgeOptions& options) : options_(options), tokens_(options.burst) {}

  // From a read's start: when its first byte, and when its last, is later than usual. Demand may
  // be hedged earlier as long as the budget is not being used up.
  Duration FirstByteBound(uint64_t bytes, bool demand) const;
  Duration TotalBound(uint64_t bytes, bool demand) const;
  Duration UsualTotal(uint64_t bytes) const;

  // A read begins: it earns its share of the budget.
  void OnStart();
  // A request is over: its first byte and its last one came so long after its start.
  void OnRead(uint64_t bytes, Duration first_byte, Duration total);
  // It gave way to another when it was `age` old; zero: its first byte had not come.
  void OnGaveWay(uint64_t bytes, Duration first_byte, Duration age);
  // An answer said slow down, or did not.
  void OnAnswer(bool throttled);

  // Changes when a bound has just been learned that was a guess before.
  uint64_t lessons() const { return lessons_; }

  // Takes a token for a second request of a read that is `age` old; false: none may be sent.
  bool Spend(uint64_t bytes, bool demand, Duration age);
  void GiveBack() { tokens_ += 1; }
  // While the server says slow down.
  bool Off() const;

 private:
  struct SizeClass {
    TimeQuantiles first_byte;
    TimeQuantiles total;
    double late_share = 0;  // of recent reads that were later than the far bound
    int lessons = 0;
  };
  static constexpr size_t kClasses = 24;
  static size_t ClassOf(uint64_t bytes);
  SizeClass& Class(uint64_t bytes) { return classes_[ClassOf(bytes)]; }
  const SizeClass& Class(uint64_t bytes) const { return classes_[ClassOf(bytes)]; }
  void CountLate(SizeClass& of, uint64_t bytes, Duration age);
  void CountLesson(SizeClass& of);
  Duration Bound(const TimeQuantiles& times, uint64_t bytes, bool demand) const;

  const HedgeOptions options_;
  std::array<SizeClass, kClasses> classes_;
  double tokens_;
  double throttled_share_ = 0;
  uint64_t lessons_ = 0;
};

}  // namespace forebay::store
