#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace forebay {

void AssertionFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "forebay: assertion failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace forebay
