#include "feed/path_pattern.h"

#include <fmt/core.h>

#include <algorithm>

namespace forebay::feed {

Result<PathPattern> PathPattern::Parse(std::string_view pattern) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("pattern '{}': {}", pattern, why));
  };
  PathPattern parsed;
  std::string literal;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '}') return bad("'}' without '{'");
    if (pattern[i] != '{') {
      literal += pattern[i++];
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (end == std::string_view::npos) return bad("'{' without '}'");
    std::string name(pattern.substr(i + 1, end - i - 1));
    if (name.empty() || name.find('{') != std::string::npos)
      return bad("braces need a name in them");
    if (std::ranges::find(parsed.names_, name) != parsed.names_.end()) {
      return bad(fmt::format("{{{}}} comes twice", name));
    }
    if (!literal.empty()) parsed.tokens_.push_back({false, std::exchange(literal, "")});
    if (!parsed.tokens_.empty() && parsed.tokens_.back().is_name) {
      return bad("two names need something between them");
    }
    parsed.names_.push_back(name);
    parsed.tokens_.push_back({true, std::move(name)});
    i = end + 1;
  }
  if (!literal.empty()) parsed.tokens_.push_back({false, std::move(literal)});
  return parsed;
}

std::optional<std::map<std::string, std::string>> PathPattern::Match(std::string_view key) const {
  std::map<std::string, std::string> values;
  std::vector<bool> failed(tokens_.size() * (key.size() + 1));
  if (!MatchFrom(key, 0, failed, values)) return std::nullopt;
  return values;
}

bool PathPattern::MatchFrom(std::string_view key, size_t token, std::vector<bool>& failed,
                            std::map<std::string, std::string>& values) const {
  if (token == tokens_.size()) return key.empty();
  const Token& now = tokens_[token];
  if (!now.is_name) {
    return key.starts_with(now.text) &&
           MatchFrom(key.substr(now.text.size()), token + 1, failed, values);
  }
  const size_t here = token + key.size() * tokens_.size();
  if (failed[here]) return false;
  const size_t longest = std::min(key.find('/'), key.size());
  for (size_t n = longest; n > 0; --n) {
    if (!MatchFrom(key.substr(n), token + 1, failed, values)) continue;
    values[now.text] = key.substr(0, n);
    return true;
  }
  failed[here] = true;
  return false;
}

}  // namespace forebay::feed
