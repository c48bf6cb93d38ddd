// Little-endian words, varints (LEB128) and zigzag: what catalogs are written in. The reader checks
// every length before it allocates and never reads past its end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

static_assert(std::endian::native == std::endian::little, "words are copied as they are");

class Writer {
 public:
  template <class T>
  void Word(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof(T));
  }
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value));
  }
  // Wraps around, so that differences of any two int64_t fit.
  void Zigzag(int64_t value) {
    Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Text(std::string_view text) {
    Varint(text.size());
    Append(AsBytes(text));
  }
  void Append(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  size_t size() const { return bytes_.size(); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// After the first failure everything reads as 0 and ok() is false.
class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}

  template <class T>
  T Word() {
    T value{};
    if (Need(sizeof(T))) {
      std::memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  uint64_t Varint() {
    // Most are small.
    if (at_ < bytes_.size() && static_cast<uint8_t>(bytes_[at_]) < 0x80 && ok_) {
      return static_cast<uint64_t>(bytes_[at_++]);
    }
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (!Need(1)) return 0;
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  int64_t Zigzag() {
    const uint64_t value = Varint();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  std::string Text() {
    const uint64_t n = Count(1);
    std::string text(AsText(bytes_.subspan(at_, n)));
    at_ += n;
    return text;
  }
  // A count of things of which each takes at least `each` bytes: fails when they cannot be there.
  uint64_t Count(uint64_t each) {
    const uint64_t n = Varint();
    if (ok_ && n > (bytes_.size() - at_) / each) ok_ = false;
    return ok_ ? n : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }
  size_t at() const { return at_; }

 private:
  bool Need(size_t n) {
    if (ok_ && n <= bytes_.size() - at_) return true;
    ok_ = false;
    return false;
  }

  ByteView bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace forebay::catalog
