#include "base/bytes.h"

#include <fmt/core.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace forebay {
namespace {

struct Unit {
  std::string_view name;  // lower case
  double factor;
};
constexpr double kKi = 1024.0;
constexpr std::array<Unit, 11> kUnits = {{{"", 1},
                                          {"b", 1},
                                          {"kb", 1e3},
                                          {"mb", 1e6},
                                          {"gb", 1e9},
                                          {"tb", 1e12},
                                          {"kib", kKi},
                                          {"mib", kKi* kKi},
                                          {"gib", kKi* kKi* kKi},
                                          {"tib", kKi* kKi* kKi* kKi},
                                          {"pib", kKi* kKi* kKi* kKi* kKi}}};

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const auto bad = [&] {
    return Status(
        Code::kInvalidArgument,
        fmt::format("'{}' is not a size (examples: 1048576, 64KiB, 1.5GiB, 500MB)", text));
  };
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return bad();
  std::string unit;
  for (const char* p = end; p != text.data() + text.size(); ++p) {
    if (*p == ' ' && unit.empty()) continue;
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = number * known.factor;
    if (bytes >= 9.2e18 || (known.factor == 1 && bytes != std::floor(bytes))) return bad();
    return static_cast<uint64_t>(bytes);
  }
  return bad();
}

std::string FormatSize(uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= kKi && unit + 1 < kNames.size()) {
    value /= kKi;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace forebay
