// The time to the first byte of a response, drawn from a distribution.
#pragma once

#include <string_view>

#include "base/random.h"
#include "forebay/status.h"

namespace forebay::faults {

// z of the 99th percentile of the normal distribution.
inline constexpr double kZ99 = 2.3263478740408408;

struct Latency {
  enum class Kind : uint8_t { kNone, kConstant, kUniform, kLognormal };
  Kind kind = Kind::kNone;
  double low_s = 0;   // the constant, the least, or the median
  double high_s = 0;  // the largest, or the 99th percentile

  // Seconds. A pure function of the state of `random`.
  double Draw(Random& random) const;
};

// "none", "constant:50ms", "uniform:10ms-50ms", "lognormal:median=130ms,p99=340ms".
Result<Latency> ParseLatency(std::string_view text);

// "130ms", "2s", "50us", "1.5m" -> seconds; a unit is required unless the number is 0.
Result<double> ParseDuration(std::string_view text);

}  // namespace forebay::faults
