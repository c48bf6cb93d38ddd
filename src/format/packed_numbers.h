// What a catalog says of a group of rows, in the key of its record: varints, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace forebay::format {

class NumberPacker {
 public:
  void Varint(uint64_t value) {
    constexpr uint64_t kLow = 0x7f;
    for (; value > kLow; value >>= 7) text_ += static_cast<char>((value & kLow) | 0x80);
    text_ += static_cast<char>(value);
  }
  void Zigzag(int64_t value) {
    Varint((static_cast<uint64_t>(value) << 1U) ^ static_cast<uint64_t>(value >> 63));
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// After the first failure everything reads as 0 and ok() is false.
class NumberUnpacker {
 public:
  explicit NumberUnpacker(std::string_view text) : text_(text) {}
  uint64_t Varint(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !text_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(text_[0]);
      text_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      ok_ = ok_ && value <= most;
      return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  int64_t Zigzag() {
    const uint64_t value = Varint();
    return static_cast<int64_t>((value >> 1U) ^ (0 - (value & 1U)));
  }
  // Of things that take a byte each at least.
  uint64_t Count() { return Varint(text_.size()); }
  bool done() const { return ok_ && text_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view text_;
  bool ok_ = true;
};

}  // namespace forebay::format
