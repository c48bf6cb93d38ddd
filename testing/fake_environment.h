// Variables and files that exist only for one test.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "store/s3/credentials.h"

namespace forebay::testing {

using Texts = std::map<std::string, std::string>;

// $HOME is /home/u unless it is among the variables.
inline store::s3::Environment FakeEnvironment(Texts variables, Texts files = {}) {
  variables.emplace("HOME", "/home/u");
  const auto find = [](const Texts& texts, const std::string& name) -> std::optional<std::string> {
    const auto found = texts.find(name);
    if (found == texts.end()) return std::nullopt;
    return found->second;
  };
  return {.variable = [variables, find](const std::string& name) { return find(variables, name); },
          .file = [files, find](const std::string& path) { return find(files, path); }};
}

}  // namespace forebay::testing
