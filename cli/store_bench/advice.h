// Which cells of range size x requests in flight to measure next, and what follows from those that
// were. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace forebay::cli {

// What one cell gave, as far as advice goes.
struct Measured {
  uint64_t range_bytes = 0;
  uint32_t in_flight = 0;
  double bytes_per_s = 0;  // while it was fully loaded
  double cpu_s_per_gib = 0;
  double slowest_of_64_s = 0;  // median
  double slowest_of_512_s = 0;
};

struct Shape {
  uint64_t range_bytes = 0;
  uint32_t in_flight = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// What may be asked for.
struct ShapeLimits {
  uint64_t range_max = 32ULL << 20;
  uint32_t in_flight_max = 1024;
  uint64_t buffer_bytes = 2ULL << 30;
};

// The shapes that a sweep for the best rate begins with, the largest ranges first, as far as the
// limits let them.
std::vector<Shape> FirstShapes(bool put, const ShapeLimits& limits);
// Where a sweep that has measured these should look next: at a neighbour of the best, whose range
// or depth is twice or half as large, or one twice and the other half. None: all that have any
// promise were measured.
std::optional<Shape> NextShape(const std::vector<Measured>& measured, const ShapeLimits& limits);

// The shapes among which the advice will choose, best first: one measurement may have been lucky,
// or unlucky, so these are worth measuring again.
std::vector<Shape> Finalists(const std::vector<Measured>& measured);

struct Advice {
  Measured best;         // the most bytes a second
  Measured recommended;  // the least memory in flight that gives nearly as much
  double runway_s = 0;   // data kept ready, so that the slowest of 512 requests holds up no step
};
// A shape that was measured several times counts with its medians.
std::optional<Advice> AdviceFrom(const std::vector<Measured>& measured);

}  // namespace forebay::cli
