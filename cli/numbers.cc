#include "numbers.h"

#include <charconv>
#include <cmath>

namespace forebay::cli {
namespace {

template <class T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  return ParseWhole<T>(text);
}
template std::optional<int64_t> ParseNumber(std::string_view text);
template std::optional<uint64_t> ParseNumber(std::string_view text);

std::optional<double> ParseReal(std::string_view text) {
  const auto value = ParseWhole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace forebay::cli
