// Numbers and lists of them as they are written on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace forebay::cli {

// "a,b,,c" -> a, b, "", c; of "" one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
// All of `text` is a whole number; none: it is not, or too large. T: int64_t, uint64_t.
template <class T = int64_t>
std::optional<T> ParseNumber(std::string_view text);
// The same of a finite number with a fraction.
std::optional<double> ParseReal(std::string_view text);

}  // namespace forebay::cli
