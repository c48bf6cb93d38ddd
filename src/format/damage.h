// How the parsers of containers say what is wrong, and the one place where lengths that come from
// outside are added up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "forebay/status.h"
#include "format/record.h"

namespace forebay::format {

// Of what is parsed: which shard, and where in it the bytes at hand begin.
struct Place {
  std::string_view shard;
  uint64_t offset = 0;

  Place operator+(uint64_t more) const { return {shard, offset + more}; }
};

// kDataLoss: "train.tar, offset 512: expected a header, found zeros".
Status Damaged(const Place& place, std::string_view expected, std::string_view found);
// kDataLoss: bytes [place.offset, place.offset + expected) were needed, `found` of them exist.
Status Truncated(const Place& place, std::string_view what, uint64_t expected, uint64_t found);
// kDataLoss: a declared number is above a limit.
Status AboveLimit(const Place& place, std::string_view what, uint64_t declared, uint64_t limit);
// kUnimplemented: valid, and not read; `what` says what to do instead.
Status Refused(const Place& place, std::string_view what);

// What a scan does when the last record is cut: the error, or only a note when the rest is wanted.
Status CutTail(bool drop, const Place& place, std::string_view what, uint64_t expected,
               uint64_t found, ScanReport* report);

// [offset, offset + size) when it lies within [0, end): no sum wraps.
constexpr std::optional<ByteRange> RangeWithin(uint64_t offset, uint64_t size, uint64_t end) {
  if (offset > end || size > end - offset) return std::nullopt;
  return ByteRange{offset, offset + size};
}

// count * each + more; none when it does not fit 64 bits.
constexpr std::optional<uint64_t> Total(uint64_t count, uint64_t each, uint64_t more = 0) {
  uint64_t product = 0;
  uint64_t sum = 0;
  if (__builtin_mul_overflow(count, each, &product) ||
      __builtin_add_overflow(product, more, &sum)) {
    return std::nullopt;
  }
  return sum;
}

// `size` rounded up to a multiple of `step`; of sizes within an object, so that nothing wraps.
constexpr uint64_t PaddedTo(uint64_t size, uint64_t step) {
  return size + (step - size % step) % step;
}

}  // namespace forebay::format
