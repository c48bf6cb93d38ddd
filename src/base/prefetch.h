// Bringing memory into the cache ahead of its use: where a thousand things wait in turn, what each
// of them needs has left the cache long before its turn comes.
#pragma once

#include <cstddef>

namespace forebay {

inline constexpr size_t kCacheLine = 64;

// Of `bytes` bytes from there on; any address will do.
inline void Prefetch(const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(at + i);
  if (bytes > 0) __builtin_prefetch(at + bytes - 1);
}

}  // namespace forebay
