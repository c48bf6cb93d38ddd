#include "order/order_digest.h"

#include <fmt/core.h>

#include "base/ascii.h"
#include "base/random.h"

namespace forebay::order {

namespace {

uint64_t WordOf(const Place& place) {
  return DeriveKey(place.sample,
                   static_cast<uint64_t>(place.source) << 40 | (place.source_epoch & 0xffffffffff));
}

void Take(uint64_t word, uint64_t& low, uint64_t& high) {
  low = Mix64((low ^ word) + 0x9e3779b97f4a7c15ULL);
  high = (high ^ word) * 0x94d049bb133111ebULL;
  high ^= high >> 31;
}

}  // namespace

void OrderDigest::Add(const Place& place) { Take(WordOf(place), low_, high_); }

void OrderDigest::AddEach(std::span<const int64_t> samples, uint64_t source_epoch) {
  uint64_t low = low_;
  uint64_t high = high_;
  for (const int64_t sample : samples) {
    Take(WordOf({0, static_cast<uint64_t>(sample), source_epoch}), low, high);
  }
  low_ = low;
  high_ = high;
}

std::string OrderDigest::ToHex() const { return fmt::format("{:016x}{:016x}", low_, high_); }

Result<OrderDigest> OrderDigest::From(const std::string& hex) {
  OrderDigest digest;
  bool good = hex.size() == 32;
  uint64_t words[2] = {0, 0};
  for (size_t i = 0; good && i < hex.size(); ++i) {
    const int value = HexValue(hex[i]);
    good = value >= 0;
    words[i / 16] = words[i / 16] << 4 | static_cast<uint64_t>(value & 15);
  }
  if (!good) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' is no order digest", hex));
  }
  digest.low_ = words[0];
  digest.high_ = words[1];
  return digest;
}

}  // namespace forebay::order
