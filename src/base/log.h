// Log lines on stderr, below a level set once at start. Never a secret, never a key of a metric.
#pragma once

#include <cstdint>
#include <string_view>

namespace forebay {

enum class LogLevel : uint8_t { kError = 0, kWarn, kInfo, kDebug, kTrace };

void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// One line "forebay <level>: <text>". Thread-safe (one write).
void Log(LogLevel level, std::string_view text);

}  // namespace forebay
