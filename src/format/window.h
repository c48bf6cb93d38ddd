// A shard read front to back in large pieces through one bounded buffer. What is asked for lies
// ahead of what was asked for before; bodies larger than the buffer are passed over.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

class Window {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;
  // What is read first, and behind bytes that were passed over: what follows may be passed over
  // too.
  static constexpr size_t kFirstBytes = size_t{64} << 10;

  // Both outlive it. Bytes read are added to `report`.
  Window(const Shard& shard, ScanReport* report) : shard_(shard), report_(report) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  const Shard& shard() const { return shard_; }
  uint64_t size() const { return shard_.size; }
  Place PlaceAt(uint64_t offset) const { return {shard_.name, offset}; }
  uint64_t Left(uint64_t offset) const { return offset < size() ? size() - offset : 0; }

  // Exactly this range, valid until the next call; at most kBytes of it. Where the shard is
  // shorter, the error says that `what` is cut.
  Result<ByteView> At(uint64_t offset, uint64_t bytes, std::string_view what);
  // What is at hand from `offset` on, at least one byte of it unless the shard ends there.
  Result<ByteView> From(uint64_t offset);
  // Makes sure that so many bytes follow those of From, or all that there are.
  Result<ByteView> AtLeast(uint64_t offset, uint64_t bytes);
  // Every byte of a range within the shard, in pieces.
  Status ForEach(ByteRange range, const std::function<void(ByteView)>& take);
  // Of a range within the shard; none when it is larger than kBytes, and therefore not read.
  Result<std::optional<uint32_t>> Crc32cOf(ByteRange range);

 private:
  Status Fill(uint64_t offset, uint64_t bytes);
  ByteView Held(uint64_t offset) const {
    return {buffer_.get() + (offset - held_.offset), static_cast<size_t>(held_.end - offset)};
  }

  const Shard& shard_;
  ScanReport* const report_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t capacity_ = 0;
  ByteRange held_;
};

}  // namespace forebay::format
