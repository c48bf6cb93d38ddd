#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "ops/parser.h"

namespace forebay::ops {
namespace {

// As Python's int(): spaces around it, a sign. No underscores.
Result<int64_t> IntOf(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(kSpaces);
  const size_t last = text.find_last_not_of(kSpaces);
  std::string_view digits =
      first == text.npos ? std::string_view() : text.substr(first, last + 1 - first);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc() && at == end) return value;
  constexpr size_t kShown = 32;
  std::string shown;
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return Status(Code::kDataLoss, fmt::format("no integer of 64 bits: '{}'", shown));
}

class IntParser : public Parser {
 public:
  explicit IntParser(const ParseIntOp& op) : results_{{op.field, "int64", {}}} {}
  const std::vector<Parsed>& results() const override { return results_; }
  Status Parse(ByteView field, const ParserOut& out) const override {
    FB_ASSIGN_OR_RETURN(const int64_t value, IntOf(AsText(field)));
    if (!out.arrays[0].empty()) std::memcpy(out.arrays[0].data(), &value, sizeof(value));
    return {};
  }

 private:
  std::vector<Parsed> results_;
};

}  // namespace

std::unique_ptr<const Parser> MakeIntParser(const ParseIntOp& op) {
  return std::make_unique<IntParser>(op);
}

}  // namespace forebay::ops
