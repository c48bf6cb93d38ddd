// A rolling digest of the samples that a run has handed out, over all ranks, in order. It depends
// on nothing but the samples: not on batch, ranks or restarts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "order/run_order.h"

namespace forebay::order {

// Version 1, frozen by tests: kept in states and logs.
class OrderDigest {
 public:
  OrderDigest() = default;
  void Add(const Place& place);
  // As Add, of samples of the only source, one after the other.
  void AddEach(std::span<const int64_t> samples, uint64_t source_epoch);
  // 32 hex digits. From: kInvalidArgument where the text is no digest.
  std::string ToHex() const;
  static Result<OrderDigest> From(const std::string& hex);
  bool operator==(const OrderDigest&) const = default;

 private:
  uint64_t low_ = 0x243f6a8885a308d3;  // of pi: nothing up a sleeve
  uint64_t high_ = 0x13198a2e03707344;
};

}  // namespace forebay::order
