#include "page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "output.h"
#include "size.h"
#include "svg.h"
#include "table.h"

namespace forebay::cli {
namespace {

constexpr int kWidth = 1080;
constexpr double kLeft = 64, kRight = 930, kTop = 34, kBottom = 286;
constexpr int kHeight = 330;
constexpr size_t kColours = 6;

constexpr char kStyle[] = R"(<style>
:root { --page:#fafaf8; --card:#fff; --ink:#1d2329; --soft:#59636e; --line:#e6e6e1; --axis:#8b949e;
  --c0:#2563a8; --c1:#c2571a; --c2:#2e7d4f; --c3:#8a3ea0; --c4:#b3203a; --c5:#7a6a12 }
@media (prefers-color-scheme: dark) { :root { --page:#14171a; --card:#1c2125; --ink:#e4e7ea;
  --soft:#9aa4ae; --line:#2d343a; --axis:#6b7680; --c0:#6aa9ec; --c1:#f0955a; --c2:#63c48b;
  --c3:#cf8fe3; --c4:#f2788d; --c5:#d8c35a } }
body { margin:0; background:var(--page); color:var(--ink);
  font:15px/1.5 system-ui,"DejaVu Sans",sans-serif }
main { max-width:1120px; margin:0 auto; padding:28px 20px 60px }
h1 { font-size:24px; margin:0 0 4px } h2 { font-size:18px; margin:34px 0 4px }
p { margin:4px 0 10px } .soft { color:var(--soft) }
section { background:var(--card); border:1px solid var(--line); border-radius:8px;
  padding:14px 18px; margin:12px 0; overflow-x:auto }
svg { display:block; width:100%; height:auto; font:12px system-ui,"DejaVu Sans",sans-serif }
svg .tick { fill:var(--soft); font-size:11.5px }
svg .axis-title { fill:var(--soft); font-size:11px }
svg .label { fill:var(--ink); font-size:12.5px; font-weight:600 }
svg .grid { stroke:var(--line); stroke-width:1 } svg .axis { stroke:var(--axis); stroke-width:1 }
pre { font:12.5px/1.45 ui-monospace,"DejaVu Sans Mono",monospace; margin:0 }
</style>)";

std::string Plain(double value) {
  return std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}
std::string Share(double value) { return fmt::format("{:.3g}%", value * 100); }

// The colour of a range, the same in every picture of the page.
class Colours {
 public:
  explicit Colours(const std::vector<SweepTarget>& targets) {
    std::set<uint64_t> ranges;
    for (const SweepTarget& target : targets) {
      for (const CellResult& cell : target.cells) ranges.insert(cell.cell.range_bytes);
    }
    ranges_.assign(ranges.begin(), ranges.end());
  }
  std::string Of(uint64_t range) const {
    const auto at = std::ranges::find(ranges_, range) - ranges_.begin();
    return fmt::format("c{}", static_cast<size_t>(at) % kColours);
  }
  const std::vector<uint64_t>& ranges() const { return ranges_; }

  void Legend(Picture& picture) const {
    double y = kTop + 6;
    for (const uint64_t range : ranges_) {
      picture.Path({{kRight + 22, y}, {kRight + 46, y}}, Of(range), 3, false, ShortSize(range));
      picture.Text(kRight + 54, y + 4, ShortSize(range), "start");
      y += 20;
    }
  }

 private:
  std::vector<uint64_t> ranges_;
};

std::string NameOf(const BenchCell& cell) {
  return fmt::format("{} x {}", ShortSize(cell.range_bytes), cell.in_flight);
}

// The cells of one range, by depth.
std::vector<size_t> CellsOf(const SweepTarget& target, uint64_t range) {
  std::vector<size_t> cells;
  for (size_t i = 0; i < target.cells.size(); ++i) {
    if (target.cells[i].cell.range_bytes == range) cells.push_back(i);
  }
  std::ranges::sort(cells, {}, [&](size_t i) { return target.cells[i].cell.in_flight; });
  return cells;
}

std::string RatePicture(const SweepTarget& target, const Colours& colours) {
  double top = 0, least = 1e9, most = 1;
  std::set<double> depths;
  for (size_t i = 0; i < target.cells.size(); ++i) {
    top = std::max(top, target.summaries[i].steady_per_s / 1e9);
    depths.insert(target.cells[i].cell.in_flight);
  }
  least = *depths.begin();
  most = std::max(*depths.rbegin(), least * 2);
  Picture picture(kWidth, kHeight, "gigabytes a second by requests in flight");
  const Scale x{.low = least, .high = most, .start = kLeft, .end = kRight, .log = true};
  const Scale y{.low = 0, .high = RoundUp(top), .start = kBottom, .end = kTop};
  picture.YAxis(y, kLeft, kRight, y.Ticks(), Plain, "GB/s");
  picture.XAxis(x, kBottom, kTop, {depths.begin(), depths.end()}, Plain, "requests in flight");
  for (const uint64_t range : colours.ranges()) {
    Points points;
    for (const size_t i : CellsOf(target, range)) {
      points.emplace_back(x(target.cells[i].cell.in_flight),
                          y(target.summaries[i].steady_per_s / 1e9));
    }
    picture.Path(points, colours.Of(range), 2, false, ShortSize(range));
    for (const size_t i : CellsOf(target, range)) {
      picture.Dot(x(target.cells[i].cell.in_flight), y(target.summaries[i].steady_per_s / 1e9),
                  colours.Of(range),
                  fmt::format("{}: {:.3f} GB/s", NameOf(target.cells[i].cell),
                              target.summaries[i].steady_per_s / 1e9));
    }
  }
  colours.Legend(picture);
  return picture.Svg();
}

// The share of requests that took longer: a straight look at the tail.
Points TailOf(const std::vector<float>& sorted, const Scale& x, const Scale& y) {
  Points points;
  const auto count = static_cast<double>(sorted.size());
  double last = -10;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double at = x(sorted[i] * 1e3);
    if (at < last + 1 && i + 1 < sorted.size()) continue;  // no more than a point a pixel
    last = at;
    points.emplace_back(at, y((count - static_cast<double>(i)) / count));
  }
  return points;
}

std::string TailPicture(const SweepTarget& target, const Colours& colours) {
  double least = 1e9, most = 0, count = 1;
  for (const Summary& summary : target.summaries) {
    if (summary.total_s.empty()) continue;
    least = std::min(least, Quantile(summary.total_s, 0.01) * 1e3);
    most = std::max(most, summary.total_s.back() * 1e3);
    count = std::max(count, static_cast<double>(summary.total_s.size()));
  }
  if (most <= 0) return "";
  Picture picture(kWidth, kHeight, "share of requests slower than a time");
  const double low = std::pow(10.0, std::floor(std::log10(std::max(least, 1e-3))));
  const double high = std::max(std::pow(10.0, std::ceil(std::log10(most))), low * 10);
  const Scale x{.low = low, .high = high, .start = kLeft, .end = kRight, .log = true};
  const Scale y{.low = std::pow(10.0, -std::ceil(std::log10(count))),
                .high = 1,
                .start = kBottom,
                .end = kTop,
                .log = true};
  picture.YAxis(y, kLeft, kRight, y.Ticks(), Share, "requests slower than");
  picture.XAxis(x, kBottom, kTop, x.Ticks(), Plain, "ms");
  for (const uint64_t range : colours.ranges()) {
    const std::vector<size_t> cells = CellsOf(target, range);
    for (size_t n = 0; n < cells.size(); ++n) {
      const Summary& summary = target.summaries[cells[n]];
      const bool deepest = n + 1 == cells.size();
      picture.Path(TailOf(summary.total_s, x, y), colours.Of(range), deepest ? 2.2 : 1.1, !deepest,
                   NameOf(target.cells[cells[n]].cell));
    }
  }
  colours.Legend(picture);
  return picture.Svg();
}

std::string TimePicture(const SweepTarget& target, const Colours& colours) {
  double top = 0, longest = 0;
  for (size_t i = 0; i < target.cells.size(); ++i) {
    for (const double rate : target.summaries[i].rates) top = std::max(top, rate / 1e9);
    longest = std::max(longest, target.cells[i].run.wall_s);
  }
  if (top <= 0 || longest <= 0) return "";
  Picture picture(kWidth, kHeight, "gigabytes a second over time");
  const Scale x{.low = 0, .high = RoundUp(longest), .start = kLeft, .end = kRight};
  const Scale y{.low = 0, .high = RoundUp(top), .start = kBottom, .end = kTop};
  picture.YAxis(y, kLeft, kRight, y.Ticks(), Plain, "GB/s");
  picture.XAxis(x, kBottom, kTop, x.Ticks(), Plain, "s since the cell began");
  for (const uint64_t range : colours.ranges()) {
    for (const size_t i : CellsOf(target, range)) {
      const std::vector<double>& rates = target.summaries[i].rates;
      const double width = target.cells[i].run.wall_s / static_cast<double>(rates.size());
      Points points;
      for (size_t b = 0; b < rates.size(); ++b) {
        points.emplace_back(x((static_cast<double>(b) + 0.5) * width), y(rates[b] / 1e9));
      }
      picture.Path(points, colours.Of(range), 1.5, false, NameOf(target.cells[i].cell));
    }
  }
  colours.Legend(picture);
  return picture.Svg();
}

std::string Section(const std::string& text, const std::string& picture) {
  if (picture.empty()) return "";
  return fmt::format("<section><p class=\"soft\">{}</p>{}</section>\n", HtmlText(text), picture);
}

}  // namespace

std::string SweepPage(const std::vector<SweepTarget>& targets, const RankPlace& place,
                      const std::string& op, const std::string& when) {
  const Colours colours(targets);
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>forebay bench store</title>" +
      std::string(kStyle) + "</head><body><main>\n<h1>What the store gives</h1>\n";
  page += fmt::format(
      "<p class=\"soft\">forebay {} bench store, {}, {} {}</p>\n", FOREBAY_VERSION, op, when,
      place.world > 1 ? fmt::format("with {} ranks at the same time", place.world) : "");
  for (const SweepTarget& target : targets) {
    const std::string advice = AdviceText(target);
    if (!advice.empty()) page += fmt::format("<p>{}</p>\n", HtmlText(advice));
  }
  for (const SweepTarget& target : targets) {
    if (target.cells.empty()) continue;
    page += fmt::format("<h2>{}</h2>\n", HtmlText(target.root));
    page += Section(
        "Gigabytes a second while a cell was fully loaded, a line for each size of a "
        "request.",
        RatePicture(target, colours));
    page += Section(
        "How many requests took longer than that, from the first attempt's start to the "
        "last byte. Thick: the most requests in flight of that size; dashed: fewer.",
        TailPicture(target, colours));
    page += Section(
        "The rate of each cell over its time. A line that falls has used up its burst "
        "credits, or met another's load.",
        TimePicture(target, colours));
  }
  page += "<h2>All numbers</h2>\n<section><pre>";
  std::string text = SweepText(targets, place);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    page += HtmlText(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return page + "</pre></section>\n</main></body></html>\n";
}

}  // namespace forebay::cli
