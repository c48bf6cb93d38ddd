#include "table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "output.h"
#include "size.h"

namespace forebay::cli {
namespace {

// Well under 1: the rate fell while the cell ran.
constexpr double kDecays = 0.7;
constexpr double kDecayAfterS = 3;

std::string Ms(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double ms = seconds * 1e3;
  return ms < 9.95 ? fmt::format("{:.2f}", ms) : fmt::format("{:.0f}", ms);
}

std::string Head() {
  return fmt::format(
      "{:>8} {:>6} {:>8} {:>9}  {:^23}  {:^23}  {:^20}  {:^13} {:>5} {:>5}\n"
      "{:>8} {:>6} {:>8} {:>9}  {:>5} {:>5} {:>5} {:>5}  {:>5} {:>5} {:>5} {:>5}  {:>6} {:>6} "
      "{:>6}  {:>6} {:>6} {:>5} {:>5}\n",
      "", "in", "", "requests", "first byte, ms", "whole request, ms", "slowest of, ms",
      "CPU s/GiB", "node", "", "range", "flight", "GB/s", "/s", "p50", "p90", "p99", "p99.9", "p50",
      "p90", "p99", "p99.9", "7", "64", "512", "user", "sys", "CPU", "503s");
}

std::string Row(const CellResult& cell, const Summary& s) {
  const auto quantiles = [](const std::vector<float>& sorted) {
    return fmt::format("{:>5} {:>5} {:>5} {:>5}", Ms(Quantile(sorted, 0.5)),
                       Ms(Quantile(sorted, 0.9)), Ms(Quantile(sorted, 0.99)),
                       Ms(Quantile(sorted, 0.999)));
  };
  const auto slowest = [](const Slowest& one) { return Ms(one.median) + (one.enough ? "" : "~"); };
  std::string row = fmt::format(
      "{:>8} {:>6} {:>8.3f} {:>9.0f}  {}  {}  {:>6} {:>6} {:>6}  {:>6.2f} {:>6.2f} {:>4.0f}% {:>5}",
      ShortSize(cell.cell.range_bytes), cell.cell.in_flight, s.bytes_per_s / 1e9, s.requests_per_s,
      quantiles(s.first_byte_s), quantiles(s.total_s), slowest(s.of_7), slowest(s.of_64),
      slowest(s.of_512), s.user_s_per_gib, s.sys_s_per_gib, 100 * s.node_cpu_ratio,
      cell.run.throttled);
  if (cell.run.errors > 0) row += fmt::format("  {} failed", cell.run.errors);
  if (s.decay < kDecays && cell.run.wall_s > kDecayAfterS) {
    row += fmt::format("  fell to {:.0f}%", 100 * s.decay);
  }
  return row + "\n";
}

}  // namespace

std::optional<Advice> AdviceOf(const SweepTarget& target) {
  std::vector<Measured> measured;
  for (size_t i = 0; i < target.cells.size(); ++i) {
    measured.push_back(MeasuredOf(target.cells[i], target.summaries[i]));
  }
  return AdviceFrom(measured);
}

std::string AdviceText(const SweepTarget& target) {
  const std::optional<Advice> advice = AdviceOf(target);
  if (!advice || target.cells.size() < 2) return "";
  const Measured& r = advice->recommended;
  return fmt::format(
      "{}: read {} at a time, {} in flight ({} of memory): {:.3f} GB/s, {:.0f}% of the best "
      "measured.\nA runway of {:.1f} s covers the slowest of 512 such requests.\n",
      target.root, ShortSize(r.range_bytes), r.in_flight, HumanSize(r.range_bytes * r.in_flight),
      r.bytes_per_s / 1e9, 100 * r.bytes_per_s / std::max(advice->best.bytes_per_s, 1.0),
      advice->runway_s);
}

std::string SweepText(const std::vector<SweepTarget>& targets, const RankPlace& place) {
  std::string text;
  bool rough = false;
  for (const SweepTarget& target : targets) {
    const bool put = !target.cells.empty() && target.cells[0].cell.put;
    text += fmt::format("{}{}", text.empty() ? "" : "\n", target.root);
    if (!put) text += fmt::format(": {} objects, {}", target.objects, HumanSize(target.bytes));
    if (target.direct) text += ", read past the page cache";
    if (place.world > 1) text += fmt::format("; {} ranks at the same time", place.world);
    text += "\n" + Head();
    std::vector<size_t> order(target.cells.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](size_t i) {
      const BenchCell& cell = target.cells[i].cell;
      return std::pair(cell.range_bytes, cell.in_flight);
    });
    for (const size_t i : order) {
      text += Row(target.cells[i], target.summaries[i]);
      rough = rough || !target.summaries[i].of_512.enough;
    }
    for (const std::string& note : target.notes) text += fmt::format("left out: {}\n", note);
  }
  if (rough) text += "~ from too few requests to be sure of\n";
  for (const SweepTarget& target : targets) {
    const std::string advice = AdviceText(target);
    if (!advice.empty()) text += "\n" + advice;
  }
  return text;
}

}  // namespace forebay::cli
