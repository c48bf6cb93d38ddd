// Latencies as S3 has them.
#pragma once

#include <cmath>

#include "base/executor.h"
#include "base/random.h"

namespace forebay::sim {

// Lognormal, given by its median and its 99th percentile.
struct Lognormal {
  double median_s = 0.130;
  double p99_s = 0.340;

  Duration Draw(Random& random) const {
    constexpr double kZ99 = 2.3263478740408408;
    constexpr double kTwoPi = 6.283185307179586;
    // Box-Muller.
    const double u = 1 - random.NextDouble();
    const double z = std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * random.NextDouble());
    const double sigma = std::log(p99_s / median_s) / kZ99;
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(median_s * std::exp(sigma * z)));
  }
};

}  // namespace forebay::sim
