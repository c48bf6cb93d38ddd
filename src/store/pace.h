// The rate at which a bucket's prefix takes requests, found from its 503s; and a bandwidth. Both
// are a few atomics that may lie in memory shared by the processes of a node: no lock is held
// anywhere, a process may die at any point, and what it had begun counts as unanswered.
//
// A prefix is open at first: requests go as they come. When enough answers say slow down, it is
// paced: requests are spaced at slightly less than the rate that was served, one phase in ten tries
// slightly more, and what a phase was served, counted by the phase in which its requests began,
// corrects the rate. So a few random 503s cost nothing, and under a fixed limit about the whole of
// it is used while next to nothing is refused.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/executor.h"

namespace forebay::store {

// All zero at first.
struct PaceState {
  struct Phase {
    std::atomic<uint64_t> number;
    std::atomic<uint32_t> started;
    std::atomic<uint32_t> served;
    std::atomic<uint32_t> refused;
  };
  static constexpr size_t kPhases = 16;

  std::atomic<uint64_t> key;           // whose it is; 0: nobody's
  std::atomic<int64_t> used_ns;        // when it was used last
  std::atomic<int64_t> rate;           // requests in 1000 s; 0: open
  std::atomic<int64_t> next_ns;        // when the next request may go
  std::atomic<uint32_t> clean;         // probes in a row about there of which nothing was refused
  std::atomic<int64_t> limit;          // the rate at which requests were refused last; 0: forgotten
  std::atomic<uint64_t> concluded;     // phases up to this one have had their say
  std::atomic<uint64_t> probe;         // the phase that tries more
  std::atomic<int64_t> gain;           // ... by so many thousandths of the rate
  std::atomic<uint32_t> calm;          // probes in a row that the requests did not fill
  std::atomic<uint32_t> base_started;  // between two probes
  std::atomic<uint32_t> base_refused;
  std::array<Phase, kPhases> phases;
};

// How one process uses a PaceState. One owner thread.
class Pace {
 public:
  explicit Pace(PaceState& state) : state_(state) {}

  bool paced() const { return state_.rate.load(std::memory_order_relaxed) != 0; }
  double rate_per_s() const;
  // When a request may go; not later than `now`: at once.
  Time ReadyAt(Time now);
  // Takes a turn: the phase, to be given to OnAnswer, or 0 when it is not yet time.
  uint64_t TryStart(Time now);
  void OnAnswer(uint64_t phase, bool refused, Time now);

 private:
  PaceState::Phase* PhaseOf(uint64_t number, bool make);
  int64_t IntervalNs(uint64_t phase) const;
  void Conclude(uint64_t present);
  void Judge(uint64_t number, uint32_t started, uint32_t served, uint32_t refused,
             uint64_t present);
  void JudgePaced(uint64_t number, double sent_per_s, double served_per_s, double refused_share,
                  uint32_t refused, uint64_t present);
  void JudgeProbe(double sent_per_s, double served_per_s, double refused_share, uint32_t refused,
                  uint64_t present);
  void SetRate(double to);
  void LimitIsHere(uint64_t present);
  void Probe(uint64_t phase, int64_t gain);

  PaceState& state_;
};

// All zero at first.
struct BandwidthState {
  std::atomic<uint64_t> key;
  std::atomic<int64_t> used_ns;
  std::atomic<int64_t> next_ns;
  std::atomic<int64_t> lent_ns;  // of the largest that was taken, paid for before the next
};

// Bytes a second, of everybody who shares the state. What is taken is on its way before it is paid
// for: so the first and each larger one is paid twice, and also a short time sees no more than the
// rate gives it.
class Bandwidth {
 public:
  Bandwidth(BandwidthState& state, uint64_t bytes_per_s)
      : state_(state), bytes_per_s_(bytes_per_s) {}

  Time ReadyAt(Time now) const;
  bool TryTake(uint64_t bytes, Time now);
  // Of what was taken, this was not used.
  void GiveBack(uint64_t bytes);

 private:
  BandwidthState& state_;
  const uint64_t bytes_per_s_;
};

}  // namespace forebay::store
