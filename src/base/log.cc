#include "base/log.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

namespace forebay {
namespace {
std::atomic<LogLevel> level_limit = LogLevel::kWarn;
constexpr std::array<std::string_view, 5> kNames = {"error", "warn", "info", "debug", "trace"};
}  // namespace

void SetLogLevel(LogLevel level) { level_limit = level; }
LogLevel GetLogLevel() { return level_limit; }

void Log(LogLevel level, std::string_view text) {
  if (level > level_limit) return;
  const std::string line =
      fmt::format("forebay {}: {}\n", kNames[static_cast<size_t>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace forebay
