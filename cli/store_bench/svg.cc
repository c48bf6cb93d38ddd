#include "svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace forebay::cli {
namespace {

double NiceStep(double about) {
  const double power = std::pow(10.0, std::floor(std::log10(about > 0 ? about : 1)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= about * 0.999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string HtmlText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

double Scale::operator()(double value) const {
  value = std::clamp(value, low, high);
  const double share = log ? std::log(value / low) / std::log(high / low)
                           : (value - low) / (high > low ? high - low : 1);
  return start + share * (end - start);
}

std::vector<double> Scale::Ticks() const {
  std::vector<double> ticks;
  if (log) {
    const double first = std::ceil(std::log10(low) - 1e-9);
    for (double power = first; power <= std::log10(high) + 1e-9; ++power) {
      ticks.push_back(std::pow(10.0, power));
    }
    return ticks;
  }
  const double step = NiceStep((high - low) / 5);
  for (double at = std::ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
    ticks.push_back(at + 0.0);  // never -0
  }
  return ticks;
}

double RoundUp(double value) {
  const double step = NiceStep(value > 0 ? value / 5 : 0.2);
  return step * std::ceil(value / step - 1e-9);
}

Picture::Picture(int width, int height, std::string label)
    : head_(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", width, height,
                        HtmlText(label))) {}

void Picture::Line(double x1, double y1, double x2, double y2, std::string_view kind) {
  marks_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>",
                  x1, y1, x2, y2, kind);
}

void Picture::Path(const Points& points, std::string_view colour, double width, bool dashed,
                   std::string_view hover) {
  if (points.empty()) return;
  std::string d;
  for (const auto& [x, y] : points)
    d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x, y);
  marks_ += fmt::format(
      "<path d=\"{}\" style=\"fill:none;stroke:var(--{});stroke-width:{};stroke-linejoin:round{}\">"
      "<title>{}</title></path>",
      d, colour, width, dashed ? ";stroke-dasharray:5 4" : "", HtmlText(hover));
}

void Picture::Dot(double x, double y, std::string_view colour, std::string_view hover) {
  marks_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" style=\"fill:var(--{})\"><title>{}</title>"
      "</circle>",
      x, y, colour, HtmlText(hover));
}

void Picture::Text(double x, double y, std::string_view words, std::string_view anchor,
                   std::string_view kind) {
  marks_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>",
                        x, y, kind, anchor, HtmlText(words));
}

void Picture::XAxis(const Scale& scale, double y, double grid_to, const std::vector<double>& ticks,
                    std::string (*show)(double), std::string_view title) {
  Line(scale.start, y, scale.end, y, "axis");
  for (const double value : ticks) {
    Line(scale(value), y, scale(value), grid_to, "grid");
    Text(scale(value), y + 17, show(value), "middle");
  }
  Text(scale.end, y + 34, title, "end", "axis-title");
}

void Picture::YAxis(const Scale& scale, double x, double grid_to, const std::vector<double>& ticks,
                    std::string (*show)(double), std::string_view title) {
  for (const double value : ticks) {
    Line(x, scale(value), grid_to, scale(value), "grid");
    Text(x - 7, scale(value) + 4, show(value), "end");
  }
  Text(x - 40, scale.end - 12, title, "start", "axis-title");
}

std::string Picture::Svg() const { return head_ + marks_ + "</svg>"; }

}  // namespace forebay::cli
