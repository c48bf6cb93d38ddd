#include "format/window.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"

namespace forebay::format {

// Makes [offset, offset + bytes) part of what is held; it lies within the shard.
Status Window::Fill(uint64_t offset, uint64_t bytes) {
  if (held_.offset <= offset && offset + bytes <= held_.end) return {};
  const bool follows = held_.offset <= offset && offset <= held_.end && !held_.empty();
  const uint64_t kept = follows ? held_.end - offset : 0;
  const uint64_t wanted = std::max<uint64_t>(bytes, follows ? kBytes : kFirstBytes);
  const uint64_t end = offset + std::min(wanted, size() - offset);
  const uint64_t needed = end - offset;
  if (needed > capacity_) {
    // Twice at most: small shards and headers alone need no large buffer.
    const size_t grown = needed <= kFirstBytes ? kFirstBytes : kBytes;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(grown);
    if (kept > 0) std::memcpy(larger.get(), Held(offset).data(), kept);
    buffer_ = std::move(larger);
    capacity_ = grown;
  } else if (kept > 0) {
    std::memmove(buffer_.get(), Held(offset).data(), kept);
  }
  held_ = {offset, offset + kept};
  const ByteRange range{held_.end, end};
  FB_RETURN_IF_ERROR(shard_.read(range, {buffer_.get() + kept, range.size()}));
  report_->bytes_read += range.size();
  held_.end = end;
  return {};
}

Result<ByteView> Window::At(uint64_t offset, uint64_t bytes, std::string_view what) {
  FB_ASSERT(bytes <= kBytes);
  if (!RangeWithin(offset, bytes, size())) {
    return Truncated(PlaceAt(offset), what, bytes, Left(offset));
  }
  if (bytes == 0) return ByteView{};
  FB_RETURN_IF_ERROR(Fill(offset, bytes));
  return Held(offset).first(bytes);
}

Result<ByteView> Window::From(uint64_t offset) { return AtLeast(offset, 1); }

Result<ByteView> Window::AtLeast(uint64_t offset, uint64_t bytes) {
  FB_ASSERT(bytes <= kBytes);
  const uint64_t wanted = std::min(bytes, Left(offset));
  if (wanted == 0) return ByteView{};
  FB_RETURN_IF_ERROR(Fill(offset, wanted));
  return Held(offset);
}

Status Window::ForEach(ByteRange range, const std::function<void(ByteView)>& take) {
  for (uint64_t at = range.offset; at < range.end;) {
    FB_ASSIGN_OR_RETURN(ByteView bytes, From(at));
    FB_ASSERT(!bytes.empty());
    bytes = bytes.first(std::min<uint64_t>(bytes.size(), range.end - at));
    take(bytes);
    at += bytes.size();
  }
  return {};
}

Result<std::optional<uint32_t>> Window::Crc32cOf(ByteRange range) {
  if (range.size() > kBytes) return std::optional<uint32_t>();
  uint32_t crc = 0;
  FB_RETURN_IF_ERROR(ForEach(range, [&crc](ByteView bytes) { crc = ExtendCrc32c(crc, bytes); }));
  return std::optional<uint32_t>(crc);
}

}  // namespace forebay::format
