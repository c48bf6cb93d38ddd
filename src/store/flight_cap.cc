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
constexpr double kMoreGain = 1.08;
constexpr double kLessLoss = 0.97;
constexpr double kFading = 0.25;

}  // namespace

FlightCap::FlightCap(size_t start, size_t most)
    : start_(std::min(std::max(start, kLeast), std::max(most, kLeast))),
      most_(std::max(most, kLeast)),
      cap_(start_),
      unmeasured_(start_) {}

void FlightCap::NewEpoch(Time now) {
  epoch_began_ = now;
  done_ = 0;
  moved_ = 0;
}

void FlightCap::Set(size_t cap, State state) {
  cap_ = std::clamp(cap, kLeast, most_);
  state_ = state;
  unmeasured_ = cap_;
}

void FlightCap::OnDone(Time now, uint64_t bytes, size_t flying, bool waits) {
  if (now - last_done_ > kPause && last_done_ != Time{}) {
    Set(start_, State::kGrowing);
    best_per_s_ = 0;
    flat_ = 0;
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
      if (per_s > kGrowth * best_per_s_) {
        best_per_s_ = per_s;
        base_ = cap_;
        flat_ = 0;
        if (cap_ == most_) {
          Set(cap_ / 2, State::kTryingLess);
        } else {
          Set(2 * cap_, State::kGrowing);
        }
      } else if (++flat_ >= kFlatEpochs) {
        Set(base_ / 2, State::kTryingLess);  // the start may have been more than is useful
      }
      return;
    case State::kSteady:
      best_per_s_ += kFading * (per_s - best_per_s_);
      if (++steady_ < kSteadyEpochs) return;
      steady_ = 0;
      base_ = cap_;
      more_next_ = !more_next_;
      if (more_next_ && cap_ < most_) {
        Set(cap_ + (cap_ + 1) / 2, State::kTryingMore);
      } else if (!more_next_ && cap_ > kLeast) {
        Set(cap_ / 2, State::kTryingLess);
      }
      return;
    case State::kTryingMore:
    case State::kTryingLess: {
      const double wanted = state_ == State::kTryingMore ? kMoreGain : kLessLoss;
      if (per_s >= wanted * best_per_s_) {
        // Further, as long as it goes well.
        best_per_s_ = per_s;
        base_ = cap_;
        const size_t next = state_ == State::kTryingMore ? cap_ + (cap_ + 1) / 2 : cap_ / 2;
        const bool possible = next >= kLeast && cap_ < most_;
        Set(possible ? next : cap_, possible ? state_ : State::kSteady);
      } else {
        Set(base_, State::kSteady);
      }
      return;
    }
  }
}

}  // namespace forebay::store
