// A little SVG: scales, axes and marks. Colours are the page's CSS variables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forebay::cli {

std::string HtmlText(std::string_view text);  // &, <, > and quotes escaped

// Values low..high onto pixels start..end; out of range is clipped.
struct Scale {
  double low = 0, high = 1, start = 0, end = 1;
  bool log = false;

  double operator()(double value) const;
  // Where to put a tick: powers of ten, or about five round numbers.
  std::vector<double> Ticks() const;
};
double RoundUp(double value);  // to a number that ends an axis well

using Points = std::vector<std::pair<double, double>>;

class Picture {
 public:
  Picture(int width, int height, std::string label);
  void Line(double x1, double y1, double x2, double y2, std::string_view kind);
  // `hover`: shown under the pointer.
  void Path(const Points& points, std::string_view colour, double width, bool dashed,
            std::string_view hover);
  void Dot(double x, double y, std::string_view colour, std::string_view hover);
  void Text(double x, double y, std::string_view words, std::string_view anchor,
            std::string_view kind = "tick");
  void XAxis(const Scale& scale, double y, double grid_to, const std::vector<double>& ticks,
             std::string (*show)(double), std::string_view title);
  void YAxis(const Scale& scale, double x, double grid_to, const std::vector<double>& ticks,
             std::string (*show)(double), std::string_view title);
  std::string Svg() const;

 private:
  std::string head_;
  std::string marks_;
};

}  // namespace forebay::cli
