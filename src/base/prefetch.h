// Bringing memory into the cache ahead of its use: where a thousand things wait in turn, what each
// of them needs has left the cache long before its turn comes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

inline constexpr size_t kCacheLine = 64;

// Of `bytes` bytes from there on; any address will do.
inline void Prefetch(const void* from, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(from) / kCacheLine * kCacheLine;
  const auto end = reinterpret_cast<uintptr_t>(from) + bytes;
  for (uintptr_t at = begin; at < end; at += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(at));  // NOLINT(performance-no-int-to-ptr)
  }
}

}  // namespace forebay
