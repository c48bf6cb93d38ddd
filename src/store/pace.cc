#include "store/pace.h"

#include <algorithm>
#include <cmath>

namespace forebay::store {
namespace {

constexpr int64_t kPhaseNs = 500'000'000;
constexpr double kPhaseS = 0.5;
constexpr uint64_t kPhasesBetweenProbes = 10;
constexpr uint64_t kPhasesToConfirm = 2;
constexpr uint64_t kPhasesAtLimit = 20;  // the same, where the limit was found
constexpr uint64_t kPhasesToAnswer = 4;  // what has not come by then is not waited for
// Turns that were due meanwhile and were not taken may be caught up with.
constexpr int64_t kCatchUpNs = 20'000'000;
constexpr int64_t kBandwidthCatchUpNs = 50'000'000;
// Nobody books further ahead: a value beyond was left by a clock that is not ours.
constexpr int64_t kAheadMaxNs = 60'000'000'000;
// After so long nothing that was found out still holds.
constexpr int64_t kForgetNs = 60'000'000'000;

constexpr int64_t kRateUnits = 1000;  // of PaceState::rate, in a request a second
constexpr double kRateLeast = 1;
constexpr double kBaseGain = 0.97;
constexpr int64_t kProbeGain = 40;
constexpr int64_t kProbeGainMost = 1000;
// What shows that the limit is ours, rather than a server's hiccup.
constexpr uint32_t kOpenRefused = 4;
constexpr double kOpenShare = 0.05;
constexpr uint32_t kBaseRefused = 3;
constexpr uint32_t kProbeRefused = 2;
constexpr double kProbeShare = 0.025;
constexpr double kBaseShare = 0.02;
constexpr double kCorrection = 0.98;
constexpr double kNearLimit = 0.9;
constexpr double kSmallStep = 0.02;
constexpr uint32_t kCleanMost = 2;
constexpr double kFilled = 0.85;  // of the turns there were
constexpr uint32_t kCalmToOpen = 3;

constexpr auto kRelaxed = std::memory_order_relaxed;

int64_t Ns(Time time) { return time.time_since_epoch().count(); }
Time At(int64_t ns) { return Time(Duration(ns)); }
uint64_t PhaseAt(int64_t ns) { return static_cast<uint64_t>(ns / kPhaseNs) + 1; }

}  // namespace

double Pace::rate_per_s() const {
  return static_cast<double>(state_.rate.load(kRelaxed)) / static_cast<double>(kRateUnits);
}

int64_t Pace::IntervalNs(uint64_t phase) const {
  const bool probes = state_.probe.load(kRelaxed) == phase;
  const double gain =
      probes ? 1 + static_cast<double>(state_.gain.load(kRelaxed)) / 1000 : kBaseGain;
  return std::llround(1e9 / (std::max(rate_per_s(), kRateLeast) * gain));
}

Time Pace::ReadyAt(Time now) {
  if (!paced()) return now;
  const int64_t at = Ns(now);
  Conclude(PhaseAt(at));
  const int64_t next = state_.next_ns.load(kRelaxed);
  return next > at + kAheadMaxNs ? now : At(next);
}

uint64_t Pace::TryStart(Time now) {
  const int64_t at = Ns(now);
  const int64_t used = state_.used_ns.exchange(at, kRelaxed);
  if (at - used > kForgetNs) state_.rate.store(0, kRelaxed);
  const uint64_t phase = PhaseAt(at);
  Conclude(phase);
  if (paced()) {
    const int64_t interval = IntervalNs(phase);
    int64_t next = state_.next_ns.load(kRelaxed);
    do {
      if (next > at && next <= at + kAheadMaxNs) return 0;
      const int64_t from = next > at ? at : std::max(next, at - kCatchUpNs);
      if (state_.next_ns.compare_exchange_weak(next, from + interval, kRelaxed)) break;
    } while (true);
  }
  if (PaceState::Phase* of = PhaseOf(phase, true)) of->started.fetch_add(1, kRelaxed);
  return phase;
}

void Pace::OnAnswer(uint64_t phase, bool refused, Time now) {
  if (PaceState::Phase* of = PhaseOf(phase, false)) {
    (refused ? of->refused : of->served).fetch_add(1, kRelaxed);
  }
  Conclude(PhaseAt(Ns(now)));
}

// The slot of that phase, taken over from one long past. A count that another process adds in that
// very moment may be lost: these are statistics.
PaceState::Phase* Pace::PhaseOf(uint64_t number, bool make) {
  PaceState::Phase& slot = state_.phases[number % PaceState::kPhases];
  uint64_t current = slot.number.load(kRelaxed);
  if (current == number) return &slot;
  if (!make || current > number) return nullptr;
  if (slot.number.compare_exchange_strong(current, number, kRelaxed)) {
    slot.started.store(0, kRelaxed);
    slot.served.store(0, kRelaxed);
    slot.refused.store(0, kRelaxed);
  }
  return &slot;
}

void Pace::Conclude(uint64_t present) {
  uint64_t done = state_.concluded.load(kRelaxed);
  if (done + PaceState::kPhases < present || done > present) {
    state_.concluded.compare_exchange_strong(done, present - 1, kRelaxed);
    return;
  }
  while (done + 1 < present) {
    const uint64_t number = done + 1;
    const PaceState::Phase& slot = state_.phases[number % PaceState::kPhases];
    uint32_t started = 0;
    uint32_t served = 0;
    uint32_t refused = 0;
    if (slot.number.load(kRelaxed) == number) {
      started = slot.started.load(kRelaxed);
      served = slot.served.load(kRelaxed);
      refused = slot.refused.load(kRelaxed);
    }
    const bool answered = (served + refused) * 10 >= started * 9;
    if (!answered && number + kPhasesToAnswer > present) return;
    // Whoever moves it on judges the phase.
    if (state_.concluded.compare_exchange_strong(done, number, kRelaxed)) {
      Judge(number, started, served, refused, present);
      done = number;
    }
  }
}

void Pace::Judge(uint64_t number, uint32_t started, uint32_t served, uint32_t refused,
                 uint64_t present) {
  const uint32_t answered = served + refused;
  if (answered > 0) {
    const double share = static_cast<double>(refused) / answered;
    const double sent_per_s = started / kPhaseS;
    const double served_per_s = sent_per_s * (1 - share);
    if (paced()) {
      JudgePaced(number, sent_per_s, served_per_s, share, refused, present);
    } else if (refused >= kOpenRefused && share > kOpenShare) {
      const double rate = std::max(kRateLeast, served_per_s);
      state_.next_ns.store(static_cast<int64_t>(present - 1) * kPhaseNs, kRelaxed);
      // Refusals that came by chance look the same: until a probe is refused this is no limit.
      state_.limit.store(0, kRelaxed);
      state_.calm.store(0, kRelaxed);
      Probe(present + kPhasesToConfirm, kProbeGain);
      state_.rate.store(std::llround(rate * kRateUnits), kRelaxed);
    }
  }
  // A probe that came and went without a request.
  const uint64_t probe = state_.probe.load(kRelaxed);
  if (paced() && probe + kPhasesToAnswer < present) Probe(present + 1, kProbeGain);
}

void Pace::JudgePaced(uint64_t number, double sent_per_s, double served_per_s, double refused_share,
                      uint32_t refused, uint64_t present) {
  const double rate = rate_per_s();
  if (number == state_.probe.load(kRelaxed)) {
    state_.base_started.store(0, kRelaxed);
    state_.base_refused.store(0, kRelaxed);
    JudgeProbe(sent_per_s, served_per_s, refused_share, refused, present);
    return;
  }
  const uint32_t here = static_cast<uint32_t>(sent_per_s * kPhaseS);
  const uint32_t started = state_.base_started.fetch_add(here, kRelaxed) + here;
  const uint32_t all_refused = state_.base_refused.fetch_add(refused, kRelaxed) + refused;
  // What is refused at the base rate is too much of it.
  const double share = started > 0 ? static_cast<double>(all_refused) / started : 0;
  const bool correct = all_refused >= kBaseRefused && share > kBaseShare;
  if (correct) {
    state_.base_started.store(0, kRelaxed);
    state_.base_refused.store(0, kRelaxed);
  }
  if (refused >= kOpenRefused && refused_share > kOpenShare) {
    SetRate(served_per_s);
  } else if (correct) {
    SetRate(rate * (1 - share) * kCorrection);
  } else {
    return;
  }
  LimitIsHere(present);
}

void Pace::JudgeProbe(double sent_per_s, double served_per_s, double refused_share,
                      uint32_t refused, uint64_t present) {
  const double rate = rate_per_s();
  const int64_t gain = state_.gain.load(kRelaxed);
  const double allowed = rate * (1 + static_cast<double>(gain) / 1000);
  const double limit = static_cast<double>(state_.limit.load(kRelaxed)) / kRateUnits;
  if (refused > 0 && refused_share > kProbeShare) {
    state_.calm.store(0, kRelaxed);
    // One may be chance. If it is the limit, a larger step meets it again.
    if (limit == 0 && refused < kProbeRefused) {
      Probe(present + kPhasesToConfirm, std::min(kProbeGainMost, gain * 2));
      return;
    }
    SetRate(std::min(served_per_s, limit > 0 && rate < limit ? limit : served_per_s));
    LimitIsHere(present);
    return;
  }
  if (sent_per_s >= kFilled * allowed) {
    // More is served than was thought: on in larger steps, but in small ones about where the limit
    // was found before.
    state_.calm.store(0, kRelaxed);
    const double next = std::max(rate, served_per_s);
    if (limit > 0 && next > kNearLimit * limit && next < limit / kNearLimit) {
      // The more of them go well, the less the limit that was found means.
      const uint32_t clean = std::min(state_.clean.fetch_add(1, kRelaxed), kCleanMost);
      SetRate(std::min(next, rate * (1 + kSmallStep * (1 << clean))));
      Probe(present + (kPhasesAtLimit >> clean), std::min(kProbeGainMost, kProbeGain << clean));
    } else {
      SetRate(next);
      if (next > limit) state_.limit.store(0, kRelaxed);
      Probe(present + 1, std::min(kProbeGainMost, gain * 2));
    }
    return;
  }
  if (state_.calm.fetch_add(1, kRelaxed) + 1 >= kCalmToOpen) {
    state_.rate.store(0, kRelaxed);
  } else {
    Probe(present + kPhasesBetweenProbes, kProbeGain);
  }
}

// One phase says little about a rate that is far off; several do.
void Pace::SetRate(double to) {
  const double rate = rate_per_s();
  to = std::clamp(to, std::max(kRateLeast, rate / 2), rate * 2.5);
  state_.rate.store(std::llround(to * kRateUnits), kRelaxed);
}

void Pace::LimitIsHere(uint64_t present) {
  state_.limit.store(state_.rate.load(kRelaxed), kRelaxed);
  state_.clean.store(0, kRelaxed);
  Probe(present + kPhasesAtLimit, kProbeGain);
}

void Pace::Probe(uint64_t phase, int64_t gain) {
  state_.gain.store(gain, kRelaxed);
  state_.probe.store(phase, kRelaxed);
}

Time Bandwidth::ReadyAt(Time now) const {
  const int64_t next = state_.next_ns.load(kRelaxed);
  return next > Ns(now) + kAheadMaxNs ? now : At(next);
}

bool Bandwidth::TryTake(uint64_t bytes, Time now) {
  const int64_t at = Ns(now);
  const int64_t takes = std::llround(static_cast<double>(bytes) * 1e9 /
                                     static_cast<double>(std::max<uint64_t>(bytes_per_s_, 1)));
  state_.used_ns.store(at, kRelaxed);
  int64_t next = state_.next_ns.load(kRelaxed);
  do {
    if (next > at && next <= at + kAheadMaxNs) return false;
    const int64_t from = next > at ? at : std::max(next, at - kBandwidthCatchUpNs);
    int64_t lent = state_.lent_ns.load(kRelaxed);
    // After a pause as long nothing of it is on its way any more.
    if (next > at || at - next > std::max(lent, kBandwidthCatchUpNs)) lent = 0;
    const int64_t more = std::max<int64_t>(0, takes - lent);
    if (state_.next_ns.compare_exchange_weak(next, from + takes + more, kRelaxed)) {
      state_.lent_ns.store(lent + more, kRelaxed);
      return true;
    }
  } while (true);
}

void Bandwidth::GiveBack(uint64_t bytes) {
  state_.next_ns.fetch_sub(std::llround(static_cast<double>(bytes) * 1e9 /
                                        static_cast<double>(std::max<uint64_t>(bytes_per_s_, 1))),
                           kRelaxed);
}

}  // namespace forebay::store
