// How many requests in flight are useful: more are tried only while more is received for it.
// Arithmetic on counts and times, without a clock; one owner thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/executor.h"

namespace forebay::store {

class FlightCap {
 public:
  // Begins at `start` (slow start), also after a pause; never above `most`.
  FlightCap(size_t start, size_t most);

  size_t cap() const { return cap_; }
  // One request ends that moved `bytes`, of `flying` with itself; `waits`: others wait for its
  // place.
  void OnDone(Time now, uint64_t bytes, size_t flying, bool waits);

 private:
  enum class State : uint8_t { kGrowing, kSteady, kTryingMore, kTryingLess };
  void EndEpoch(double per_s);
  void NewEpoch(Time now);
  void EndGrowing(double per_s);
  void EndTrying(double per_s);
  void Set(size_t cap, State state);
  size_t More() const { return cap_ + (cap_ + 1) / 2; }
  size_t Less() const { return cap_ - (cap_ + 3) / 4; }

  const size_t start_;
  const size_t most_;
  size_t cap_;
  State state_ = State::kGrowing;
  Time last_done_{};
  // The epoch: so many requests pass unmeasured after a change, then as many as fly are measured.
  Time epoch_began_{};
  size_t unmeasured_ = 0;
  size_t done_ = 0;
  double moved_ = 0;
  // What was found.
  double best_per_s_ = 0;  // at cap_, or at base_ while something else is tried
  size_t base_ = 0;
  bool grew_ = false;  // by a measured gain
  int flat_ = 0;       // growing: epochs in a row without gain
  int steady_ = 0;     // epochs since something was tried
  int steady_wanted_;  // until something is tried
  bool more_next_ = true;
};

}  // namespace forebay::store
