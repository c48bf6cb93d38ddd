#include "testing/faults/latency.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <numbers>
#include <string>

#include "base/assert.h"

namespace forebay::faults {
namespace {

constexpr double kLongest_s = 24 * 3600.0;

Status Bad(std::string_view text, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("\"{}\": {}", text, why)};
}

// "name=value" -> value.
Result<double> NamedDuration(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=') {
    return Bad(text, fmt::format("expected {}=DURATION", name));
  }
  return ParseDuration(text.substr(name.size() + 1));
}

Result<Latency> ParseLognormal(std::string_view arguments) {
  const size_t comma = arguments.find(',');
  if (comma == std::string_view::npos) return Bad(arguments, "expected median=..,p99=..");
  Latency latency{Latency::Kind::kLognormal};
  FB_ASSIGN_OR_RETURN(latency.low_s, NamedDuration(arguments.substr(0, comma), "median"));
  FB_ASSIGN_OR_RETURN(latency.high_s, NamedDuration(arguments.substr(comma + 1), "p99"));
  if (latency.low_s <= 0 || latency.high_s < latency.low_s) {
    return Bad(arguments, "needs 0 < median <= p99");
  }
  return latency;
}

Result<Latency> ParseUniform(std::string_view arguments) {
  const size_t dash = arguments.find('-');
  if (dash == std::string_view::npos) return Bad(arguments, "expected LEAST-MOST");
  Latency latency{Latency::Kind::kUniform};
  FB_ASSIGN_OR_RETURN(latency.low_s, ParseDuration(arguments.substr(0, dash)));
  FB_ASSIGN_OR_RETURN(latency.high_s, ParseDuration(arguments.substr(dash + 1)));
  if (latency.high_s < latency.low_s) return Bad(arguments, "needs LEAST <= MOST");
  return latency;
}

}  // namespace

double Latency::Draw(Random& random) const {
  switch (kind) {
    case Kind::kNone:
      return 0;
    case Kind::kConstant:
      return low_s;
    case Kind::kUniform:
      return low_s + (high_s - low_s) * random.NextDouble();
    case Kind::kLognormal: {
      // Box and Muller; 1 - u lies in (0, 1], so that the logarithm is finite.
      const double radius = std::sqrt(-2 * std::log(1 - random.NextDouble()));
      const double z = radius * std::cos(2 * std::numbers::pi * random.NextDouble());
      return low_s * std::exp(z * std::log(high_s / low_s) / kZ99);
    }
  }
  FB_ASSERT(false);
}

Result<Latency> ParseLatency(std::string_view text) {
  if (text == "none") return Latency{};
  const size_t colon = text.find(':');
  const auto kind = text.substr(0, colon);
  if (colon == std::string_view::npos) return Bad(text, "unknown latency");
  const auto arguments = text.substr(colon + 1);
  if (kind == "lognormal") return ParseLognormal(arguments);
  if (kind == "uniform") return ParseUniform(arguments);
  if (kind == "constant") {
    Latency latency{Latency::Kind::kConstant};
    FB_ASSIGN_OR_RETURN(latency.low_s, ParseDuration(arguments));
    return latency;
  }
  return Bad(text, "unknown latency (none, constant, uniform, lognormal)");
}

Result<double> ParseDuration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || !std::isfinite(number) || number < 0) {
    return Bad(text, "not a duration");
  }
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double factor = 0;
  if (unit == "ns") factor = 1e-9;
  if (unit == "us") factor = 1e-6;
  if (unit == "ms") factor = 1e-3;
  if (unit == "s") factor = 1;
  if (unit == "m") factor = 60;
  if (unit.empty() && number == 0) return 0.0;
  if (factor == 0) return Bad(text, "a duration needs a unit: ns, us, ms, s or m");
  if (number * factor > kLongest_s) return Bad(text, "longer than a day");
  return number * factor;
}

}  // namespace forebay::faults
