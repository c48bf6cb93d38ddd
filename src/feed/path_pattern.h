// "{scene}/{camera}.mp4": names parts of a key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"

namespace forebay::feed {

class PathPattern {
 public:
  // {name}, each name once, matches one or more characters other than '/', as many as possible.
  // Everything else is literal. Errors: kInvalidArgument.
  static Result<PathPattern> Parse(std::string_view pattern);

  // Name -> value, or nullopt when the whole key does not fit.
  std::optional<std::map<std::string, std::string>> Match(std::string_view key) const;
  const std::vector<std::string>& names() const { return names_; }  // in order

 private:
  struct Token {
    bool is_name = false;
    std::string text;
  };
  // `failed`: which (token, length of `key`) are known not to fit. Without it a key of dashes under
  // "{a}-{b}-{c}-{d}" would take as long as there are ways to cut it.
  bool MatchFrom(std::string_view key, size_t token, std::vector<bool>& failed,
                 std::map<std::string, std::string>& values) const;

  std::vector<Token> tokens_;
  std::vector<std::string> names_;
};

}  // namespace forebay::feed
