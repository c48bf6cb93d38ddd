#include "base/stream_copy.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace forebay {
namespace {

constexpr size_t kStreamFrom = 16 << 10;  // smaller copies stay in the caches
constexpr size_t kLine = 64;
// What is summed and then copied is read from the first-level cache the second time.
constexpr size_t kSummed = 12 << 10;

#if defined(__x86_64__)

void CopyLine(const std::byte* from, std::byte* to) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

// Whole lines of the target; the caller fences.
void CopyLines(ByteView from, std::byte* to) {
  const size_t head = std::min(-reinterpret_cast<uintptr_t>(to) % kLine, from.size());
  std::memcpy(to, from.data(), head);
  size_t at = head;
  for (; at + kLine <= from.size(); at += kLine) CopyLine(from.data() + at, to + at);
  std::memcpy(to + at, from.data() + at, from.size() - at);
}

// Before anything that tells another thread of the bytes.
void Fence() { _mm_sfence(); }

#else

void CopyLines(ByteView from, std::byte* to) { std::memcpy(to, from.data(), from.size()); }
void Fence() {}

#endif

}  // namespace

void StreamCopy(ByteView from, std::byte* to) {
  if (from.empty()) return;
  if (from.size() < kStreamFrom) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  CopyLines(from, to);
  Fence();
}

uint32_t StreamCopyCrc32c(uint32_t crc, ByteView from, std::byte* to) {
  if (from.size() < kStreamFrom) {
    crc = ExtendCrc32c(crc, from);
    StreamCopy(from, to);
    return crc;
  }
  while (!from.empty()) {
    const ByteView part = from.first(std::min(from.size(), kSummed));
    crc = ExtendCrc32c(crc, part);
    CopyLines(part, to);
    from = from.subspan(part.size());
    to += part.size();
  }
  Fence();
  return crc;
}

}  // namespace forebay
