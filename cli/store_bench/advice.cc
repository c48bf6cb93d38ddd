#include "advice.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace forebay::cli {
namespace {

// What is recommended gives at least this much of the best rate measured.
constexpr double kNearlyAsMuch = 0.98;
// A neighbour may be better when the way to the best still rose by this much.
constexpr double kStillRising = 1.02;
// Smaller reads are for their latency, not for their rate.
constexpr uint64_t kRangeForRate = 64 * 1024;
// What may be the best after all, once measured again.
constexpr double kWorthAnotherLook = 0.85;
constexpr size_t kFinalists = 4;
// What a search begins with: steps of four, between which it looks where that pays.
const std::vector<uint64_t> kGetRanges = {16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10};
const std::vector<uint32_t> kGetDepths = {8, 32, 128, 512};
const std::vector<uint64_t> kPutRanges = {8 << 20, 1 << 20, 64 << 10};
const std::vector<uint32_t> kPutDepths = {8, 32};
constexpr double kRunwayStep = 0.1;
constexpr double kRunwayLeast = 0.2;

bool Fits(const Shape& shape, const ShapeLimits& limits) {
  return shape.range_bytes <= limits.range_max && shape.in_flight >= 1 &&
         shape.in_flight <= limits.in_flight_max &&
         shape.range_bytes <= limits.buffer_bytes / shape.in_flight;
}

const Measured* Find(const std::vector<Measured>& measured, const Shape& shape) {
  const auto found = std::ranges::find_if(measured, [&](const Measured& m) {
    return m.range_bytes == shape.range_bytes && m.in_flight == shape.in_flight;
  });
  return found == measured.end() ? nullptr : &*found;
}

const Measured* Best(const std::vector<Measured>& measured) {
  const Measured* best = nullptr;
  for (const Measured& m : measured) {
    if (m.range_bytes < kRangeForRate || !(m.bytes_per_s > 0)) continue;
    if (best == nullptr || m.bytes_per_s > best->bytes_per_s) best = &m;
  }
  return best;
}

// One of each shape, with the medians of all its measurements.
std::vector<Measured> Merged(const std::vector<Measured>& measured) {
  std::vector<Measured> merged;
  for (const Measured& m : measured) {
    if (Find(merged, {m.range_bytes, m.in_flight}) != nullptr) continue;
    const auto median = [&](double Measured::* of) {
      std::vector<double> values;
      for (const Measured& one : measured) {
        if (one.range_bytes == m.range_bytes && one.in_flight == m.in_flight) {
          values.push_back(one.*of);
        }
      }
      std::ranges::sort(values);
      const size_t half = values.size() / 2;
      return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    };
    merged.push_back({.range_bytes = m.range_bytes,
                      .in_flight = m.in_flight,
                      .bytes_per_s = median(&Measured::bytes_per_s),
                      .cpu_s_per_gib = median(&Measured::cpu_s_per_gib),
                      .slowest_of_64_s = median(&Measured::slowest_of_64_s),
                      .slowest_of_512_s = median(&Measured::slowest_of_512_s)});
  }
  return merged;
}

// Along one axis, from the best: the nearest shape measured below it, whose rate says whether the
// way up still rises.
template <class Less>
const Measured* Below(const std::vector<Measured>& measured, const Measured& best, Less on_axis) {
  const Measured* below = nullptr;
  for (const Measured& m : measured) {
    if (!on_axis(m)) continue;
    const uint64_t product = m.range_bytes * m.in_flight;
    if (product >= best.range_bytes * best.in_flight) continue;
    if (below == nullptr || product > below->range_bytes * below->in_flight) below = &m;
  }
  return below;
}

}  // namespace

std::vector<Shape> FirstShapes(bool put, const ShapeLimits& limits) {
  std::vector<Shape> shapes;
  for (const uint64_t range : put ? kPutRanges : kGetRanges) {
    for (const uint32_t depth : put ? kPutDepths : kGetDepths) {
      const Shape shape{range, depth};
      if (Fits(shape, limits)) shapes.push_back(shape);
    }
  }
  return shapes;
}

std::optional<Shape> NextShape(const std::vector<Measured>& measured, const ShapeLimits& limits) {
  const Measured* best = Best(measured);
  if (best == nullptr) return std::nullopt;
  const Measured* less_depth =
      Below(measured, *best, [&](const Measured& m) { return m.range_bytes == best->range_bytes; });
  const Measured* less_range = Below(measured, *best, [&](const Measured& m) {
    return m.in_flight == best->in_flight && m.range_bytes >= kRangeForRate;
  });
  const auto rises = [&](const Measured* below) {
    return below == nullptr || best->bytes_per_s > below->bytes_per_s * kStillRising;
  };
  std::vector<Shape> wanted;
  if (rises(less_depth)) wanted.push_back({best->range_bytes, best->in_flight * 2});
  if (rises(less_range)) wanted.push_back({best->range_bytes * 2, best->in_flight});
  // As many bytes in flight, in other requests.
  const bool smaller = best->range_bytes / 2 >= kRangeForRate;
  if (smaller) wanted.push_back({best->range_bytes / 2, best->in_flight * 2});
  wanted.push_back({best->range_bytes * 2, best->in_flight / 2});
  // A server that suffers from too much has its best below what was tried first.
  wanted.push_back({best->range_bytes, best->in_flight / 2});
  if (smaller) wanted.push_back({best->range_bytes / 2, best->in_flight});
  for (const Shape& shape : wanted) {
    if (Fits(shape, limits) && Find(measured, shape) == nullptr) return shape;
  }
  return std::nullopt;
}

std::vector<Shape> Finalists(const std::vector<Measured>& given) {
  std::vector<Measured> measured = Merged(given);
  const Measured* best = Best(measured);
  if (best == nullptr) return {};
  const double least = kWorthAnotherLook * best->bytes_per_s;
  std::erase_if(measured, [&](const Measured& m) {
    return m.range_bytes < kRangeForRate || m.bytes_per_s < least;
  });
  std::ranges::sort(measured, std::greater<>(), &Measured::bytes_per_s);
  measured.resize(std::min(measured.size(), kFinalists));
  std::vector<Shape> shapes;
  for (const Measured& m : measured) shapes.push_back({m.range_bytes, m.in_flight});
  return shapes;
}

std::optional<Advice> AdviceFrom(const std::vector<Measured>& given) {
  const std::vector<Measured> measured = Merged(given);
  const Measured* best = Best(measured);
  if (best == nullptr) return std::nullopt;
  Advice advice{.best = *best, .recommended = *best};
  const auto memory = [](const Measured& m) { return m.range_bytes * m.in_flight; };
  for (const Measured& m : measured) {
    if (m.range_bytes < kRangeForRate) continue;
    if (m.bytes_per_s < kNearlyAsMuch * best->bytes_per_s) continue;
    if (memory(m) < memory(advice.recommended)) advice.recommended = m;
  }
  const double slowest = advice.recommended.slowest_of_512_s;
  const double whole = std::ceil(slowest / kRunwayStep - 1e-9) * kRunwayStep;
  advice.runway_s = std::max(kRunwayLeast, std::isfinite(whole) ? whole : kRunwayLeast);
  return advice;
}

}  // namespace forebay::cli
