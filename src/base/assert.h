// Assertions: bugs only, never outside input. On in release builds.
#pragma once

namespace forebay {
[[noreturn]] void AssertionFailed(const char* expression, const char* file, int line);
}

#define FB_ASSERT(expr)                                      \
  do {                                                       \
    if (!(expr)) [[unlikely]]                                \
      ::forebay::AssertionFailed(#expr, __FILE__, __LINE__); \
  } while (0)
