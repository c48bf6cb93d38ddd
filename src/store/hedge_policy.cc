#include "store/hedge_policy.h"

#include <algorithm>
#include <bit>

namespace forebay::store {
namespace {

// Reads that a quantile needs before it is believed, and that a multiple of the median needs.
constexpr double kLearned = 64;
constexpr double kGuessed = 8;
// With a second request as fast as the usual one, waiting less than this gains nothing.
constexpr double kDemandMedians = 1.5;
constexpr double kFarMedians = 2;
constexpr double kGuessMedians = 3;
// Where more reads are lost than a quantile leaves out, it says nothing.
constexpr double kDemandMediansMost = 4;
constexpr double kFarMediansMost = 6;
constexpr double kDemandQuantile = 0.95;
constexpr double kSparingQuantile = 0.985;
constexpr double kFarQuantile = 0.99;
constexpr double kUnlearnedBytesPerS = 8e6;

constexpr double kLateWindow = 32;  // reads
constexpr double kLateShareMuch = 0.15;
constexpr double kMuchLater = 3;
constexpr double kRelearnWindow = 64;
constexpr double kThrottledWindow = 128;  // answers
constexpr double kThrottledShareOff = 0.06;

Duration Times(Duration time, double factor) {
  return std::chrono::duration_cast<Duration>(time * factor);
}

}  // namespace

// Two classes an octave would have too few reads each; one is near enough.
size_t HedgePolicy::ClassOf(uint64_t bytes) {
  const auto kib = static_cast<size_t>(std::bit_width(bytes >> 12));
  return std::min(kib, kClasses - 1);
}

Duration HedgePolicy::Bound(const TimeQuantiles& times, uint64_t bytes, bool demand) const {
  if (times.count() < kGuessed) {
    return options_.unlearned + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                                    static_cast<double>(bytes) / kUnlearnedBytesPerS));
  }
  const Duration median = times.At(0.5);
  if (times.count() < kLearned) return std::max(options_.least, Times(median, kGuessMedians));
  const bool ample = tokens_ > options_.burst / 2;
  const double q = !demand ? kFarQuantile : ample ? kDemandQuantile : kSparingQuantile;
  const Duration least = Times(median, demand ? kDemandMedians : kFarMedians);
  const Duration most = Times(median, demand ? kDemandMediansMost : kFarMediansMost);
  return std::max(options_.least, std::clamp(times.At(q), least, most));
}

// While everything is late a second request would be as late; what is much later still is lost.
Duration HedgePolicy::FirstByteBound(uint64_t bytes, bool demand) const {
  const SizeClass& of = Class(bytes);
  const Duration bound = Bound(of.first_byte, bytes, demand);
  return of.late_share > kLateShareMuch ? Times(bound, kMuchLater) : bound;
}

Duration HedgePolicy::TotalBound(uint64_t bytes, bool demand) const {
  const SizeClass& of = Class(bytes);
  const Duration bound = Bound(of.total, bytes, demand);
  return of.late_share > kLateShareMuch ? Times(bound, kMuchLater) : bound;
}

Duration HedgePolicy::UsualTotal(uint64_t bytes) const { return Class(bytes).total.At(0.5); }

void HedgePolicy::OnStart() { tokens_ = std::min(options_.burst, tokens_ + options_.budget); }

void HedgePolicy::CountLate(SizeClass& of, uint64_t bytes, Duration age) {
  const bool late = of.total.count() >= kLearned && age > Bound(of.total, bytes, false);
  of.late_share += ((late ? 1 : 0) - of.late_share) / kLateWindow;
  if (of.late_share <= kLateShareMuch) return;
  // The times have changed: the old ones are in the way of learning.
  for (TimeQuantiles* times : {&of.first_byte, &of.total}) {
    if (times->count() > 2 * kRelearnWindow) times->Fade(0.5);
  }
}

void HedgePolicy::OnRead(uint64_t bytes, Duration first_byte, Duration total) {
  SizeClass& of = Class(bytes);
  CountLate(of, bytes, total);
  of.first_byte.Add(first_byte);
  of.total.Add(total);
  CountLesson(of);
}

void HedgePolicy::CountLesson(SizeClass& of) {
  const int lessons = of.total.count() >= kLearned ? 2 : of.total.count() >= kGuessed ? 1 : 0;
  if (lessons <= of.lessons) return;
  of.lessons = lessons;
  ++lessons_;
}

void HedgePolicy::OnGaveWay(uint64_t bytes, Duration first_byte, Duration age) {
  SizeClass& of = Class(bytes);
  CountLate(of, bytes, age);
  if (first_byte > Duration{}) {
    of.first_byte.Add(first_byte);
  } else {
    of.first_byte.AddLonger(age);
  }
  of.total.AddLonger(age);
}

void HedgePolicy::OnAnswer(bool throttled) {
  throttled_share_ += ((throttled ? 1 : 0) - throttled_share_) / kThrottledWindow;
}

bool HedgePolicy::Off() const { return throttled_share_ > kThrottledShareOff; }

bool HedgePolicy::Spend(uint64_t bytes, bool demand, Duration age) {
  if (Off()) return false;
  // The last tokens are for whoever waits. A read that seems to be lost borrows from those to come:
  // nobody reads on, and earns, while all wait for it.
  const bool lost = age > Times(Bound(Class(bytes).total, bytes, false), kMuchLater);
  const double kept = lost ? -options_.burst : demand ? 0 : options_.burst / 4;
  if (tokens_ < 1 + kept) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace forebay::store
