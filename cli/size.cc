#include "size.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "output.h"

namespace forebay::cli {

std::optional<uint64_t> ParseSize(const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1},
                                                       {"B", 1},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"KiB", 1024.0},
                                                       {"MiB", 1048576.0},
                                                       {"GiB", 1073741824.0},
                                                       {"TiB", 1099511627776.0}};
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || !(number >= 0)) return std::nullopt;
  std::string unit(rest);
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  const auto found = kUnits.find(unit);
  if (found == kUnits.end() || number * found->second >= 9e18) return std::nullopt;
  return static_cast<uint64_t>(number * found->second);
}

std::string ShortSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  uint64_t value = bytes;
  while (value >= 1024 && value % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return value < 10'000 ? fmt::format("{}{}", value, kUnits[unit]) : HumanSize(bytes);
}

}  // namespace forebay::cli
