#include "store/flight_cap.h"

#include <algorithm>

namespace forebay::store {
namespace {

constexpr size_t kLeast = 4;
constexpr auto kPause = std::chrono::seconds(10);
constexpr auto kEpochLeast = std::chrono::milliseconds(100);
constexpr size_t kEpochRequestsLeast = 16;
constexpr double kMostly = 0.7;
// A request costs about as much as moving so many bytes.
constexpr double kRequestBytes = 16 * 1024;
constexpr double kGrowth = 1.10;  // what a doubling must bring to go on
constexpr int kFlatEpochs = 2;
constexpr int kSteadyEpochs = 8;
constexpr int kSteadyEpochsMost = 128;
constexpr double kMoreGain = 1.08;
constexpr double kLessLoss = 0.97;
constexpr double kFading = 0.25;

}  // namespace

FlightCap::FlightCap(size_t start, size_t most)
    : start_(std::min(std::max(start, kLeast), std::max(most, kLeast))),
      most_(std::max(most, kLeast)),
      cap_(start_),
      unmeasured_(start_),
      steady_wanted_(kSteadyEpochs) {}

void FlightCap::NewEpoch(Time now) {
  epoch_began_ = now;
  done_ = 0;
  moved_ = 0;
}

void FlightCap::Set(size_t cap, State state) {
  unmeasured_ = std::max(cap_, cap);  // those that began before the change
  cap_ = std::clamp(cap, kLeast, most_);
  state_ = state;
}

void FlightCap::OnDone(Time now, uint64_t bytes, size_t flying, bool waits) {
  if (now - last_done_ > kPause && last_done_ != Time{}) {
    Set(start_, State::kGrowing);
    best_per_s_ = 0;
    flat_ = steady_ = 0;
    steady_wanted_ = kSteadyEpochs;
    NewEpoch(now);
  }
  last_done_ = now;
  // While nobody has to wait, the cap is no limit and nothing can be learned about it; but whether
  // more than before is useful shows when more fly.
  const bool more = state_ == State::kGrowing || state_ == State::kTryingMore;
  const bool tells =
      waits || (more && static_cast<double>(flying) >= kMostly * static_cast<double>(cap_));
  if (!tells) {
    if (state_ == State::kTryingLess) Set(base_, State::kSteady);
    unmeasured_ = std::max<size_t>(unmeasured_, 1);
  }
  if (unmeasured_ > 0) {
    --unmeasured_;
    NewEpoch(now);
    return;
  }
  ++done_;
  moved_ += static_cast<double>(bytes) + kRequestBytes;
  const Duration took = now - epoch_began_;
  if (took < kEpochLeast || done_ < std::max(kEpochRequestsLeast, cap_)) return;
  const double per_s = moved_ / std::chrono::duration<double>(took).count();
  NewEpoch(now);
  EndEpoch(per_s);
}

void FlightCap::EndEpoch(double per_s) {
  switch (state_) {
    case State::kGrowing:
      EndGrowing(per_s);
      return;
    case State::kSteady:
      best_per_s_ += kFading * (per_s - best_per_s_);
      if (++steady_ < steady_wanted_) return;
      steady_ = 0;
      base_ = cap_;
      more_next_ = !more_next_;
      if (more_next_ && cap_ < most_) {
        Set(More(), State::kTryingMore);
      } else if (!more_next_ && cap_ > kLeast) {
        Set(Less(), State::kTryingLess);
      }
      return;
    case State::kTryingMore:
    case State::kTryingLess:
      EndTrying(per_s);
      return;
  }
}

void FlightCap::EndGrowing(double per_s) {
  if (per_s > kGrowth * best_per_s_) {
    const bool first = best_per_s_ == 0;
    best_per_s_ = per_s;
    flat_ = 0;
    grew_ = !first;
    base_ = cap_;
    if (cap_ == most_) {
      Set(cap_, State::kSteady);
    } else {
      Set(2 * cap_, State::kGrowing);
      unmeasured_ /= 2;  // the number is not steady yet: an estimate will do
    }
  } else if (++flat_ >= kFlatEpochs) {
    // The start itself may have been more than is useful.
    cap_ = base_;
    Set(grew_ ? base_ : Less(), grew_ ? State::kSteady : State::kTryingLess);
  }
}

void FlightCap::EndTrying(double per_s) {
  const bool more = state_ == State::kTryingMore;
  if (per_s >= (more ? kMoreGain : kLessLoss) * best_per_s_) {
    // Further, as long as it goes well.
    best_per_s_ = per_s;
    base_ = cap_;
    steady_wanted_ = kSteadyEpochs;
    const bool possible = more ? cap_ < most_ : cap_ > kLeast;
    Set(possible ? (more ? More() : Less()) : cap_, possible ? state_ : State::kSteady);
  } else {
    // What did not help is tried again later and later.
    steady_wanted_ = std::min(2 * steady_wanted_, kSteadyEpochsMost);
    Set(base_, State::kSteady);
  }
}

}  // namespace forebay::store
