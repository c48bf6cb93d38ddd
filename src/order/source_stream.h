// A source without end: its epochs one after the other, each in an order of its own. A source may
// grow at an epoch's start; what came before stays as it was.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "forebay/status.h"
#include "order/epoch_order.h"

namespace forebay::order {

// From this epoch of the source on it has so many samples. New ones are numbered behind the old.
struct SourceSize {
  uint64_t from_epoch = 0;
  uint64_t samples = 0;
  std::shared_ptr<const BlockTable> blocks = nullptr;  // for a block shuffle
};

struct SourceSpec {
  uint64_t seed = 0;
  Shuffle shuffle = GlobalShuffle{};
  std::vector<SourceSize> sizes;  // by from_epoch, the first from 0; none empty
};

// Not thread-safe: keeps the orders of the epochs used last.
class SourceStream {
 public:
  // Errors: kInvalidArgument (no samples, sizes out of order or shrinking, a block table that does
  // not fit).
  static Result<SourceStream> Make(SourceSpec spec);

  struct At {
    uint64_t epoch = 0;
    uint64_t position = 0;  // in the epoch
  };
  // Of number `index` of the stream.
  At Locate(uint64_t index);
  uint64_t IndexOf(uint64_t epoch, uint64_t position) const;
  uint64_t SamplesIn(uint64_t epoch) const { return SizeIn(epoch).samples; }
  OrderSpec OrderOf(uint64_t epoch) const;
  // The order of one epoch; valid until the next call.
  EpochOrder& Order(uint64_t epoch);

 private:
  struct Kept {
    uint64_t epoch = 0;
    std::optional<EpochOrder> order;
    uint64_t used = 0;
  };
  explicit SourceStream(SourceSpec spec) : spec_(std::move(spec)) {}
  size_t SizeNumber(uint64_t epoch) const;
  const SourceSize& SizeIn(uint64_t epoch) const { return spec_.sizes[SizeNumber(epoch)]; }

  SourceSpec spec_;
  std::vector<uint64_t> first_;  // per size: the stream's index at its first epoch's start
  // The epoch in which Locate found the last one: its first index and samples.
  uint64_t located_epoch_ = 0;
  uint64_t located_first_ = 0;
  uint64_t located_samples_ = 0;
  std::array<Kept, 2> kept_;  // of this epoch and of the next or the one before
  uint64_t uses_ = 0;
};

}  // namespace forebay::order
