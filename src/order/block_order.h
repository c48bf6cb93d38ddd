// The two-level shuffle of one epoch: the blocks are permuted, laid end to end and cut into P equal
// streams; each stream is shuffled inside windows of about W blocks; the epoch takes `run`
// positions from each stream in turn. A block's samples are therefore used within a short time, on
// few ranks, so that one range read serves many of them.
//
// Version 1; its outputs are frozen by tests. Exact for every number of samples: what is left over
// when streams are cut equal is one more, shorter stream at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "order/block_table.h"
#include "order/divider.h"
#include "order/permutation.h"

namespace forebay::order {

struct BlockShuffle {
  uint64_t window_blocks = 16;  // W: open at a time, per stream
  uint64_t streams = 1;         // P: fixed for the run, whatever the world size
  // Positions taken from one stream before the next: at best a rank's batch, so that with P ranks
  // each one reads a stream of its own.
  uint64_t run = 64;
  bool operator==(const BlockShuffle&) const = default;
};

// Not thread-safe: keeps the windows that it used last.
class BlockOrder {
 public:
  BlockOrder(std::shared_ptr<const BlockTable> table, const BlockShuffle& shuffle, uint64_t key);
  uint64_t At(uint64_t position);
  // Of the positions from `first` on.
  void AtEach(uint64_t first, std::span<uint64_t> samples);
  uint64_t PositionOf(uint64_t sample);
  // Which window a position is served from: (stream, window) as one number that grows inside a
  // stream. Blocks of older windows of the stream are done with.
  uint64_t WindowOf(uint64_t position) const;

 private:
  // A position's place in the streams.
  struct InStream {
    uint64_t stream = 0;
    uint64_t index = 0;   // in the stream
    uint64_t first = 0;   // where the stream begins, in the laid-out blocks
    uint64_t length = 0;  // of the stream
  };
  struct Window {
    uint64_t stream = 0;
    uint64_t window = 0;
    std::optional<Permutation> permutation;
    // The blocks it lies in, from this rank on: where each begins, laid out and in the catalog.
    // Empty where they are too many to keep.
    uint64_t first_rank = 0;
    struct Block {
      uint64_t first_laid = 0;
      uint64_t first_sample = 0;
    };
    std::vector<Block> blocks;
    // Of few blocks: what is added to a place in them, from where each begins on; modulo 2^64.
    std::vector<uint64_t> thresholds;
    std::vector<uint64_t> deltas;
    const Block& Holding(uint64_t laid) const;
  };
  InStream StreamAt(uint64_t position) const;
  InStream StreamHolding(uint64_t laid) const;  // of a place in the laid-out blocks
  uint64_t PositionIn(const InStream& place) const;
  uint64_t SampleAt(const Window& window, uint64_t laid) const;
  void SamplesAt(const Window& window, std::span<uint64_t> laid) const;
  const Window& WindowAt(const InStream& place, uint64_t window);
  uint64_t FirstLaid(uint64_t rank) const;  // of the block that was permuted to `rank`
  uint64_t RankOfLaid(uint64_t laid) const;

  std::shared_ptr<const BlockTable> table_;
  BlockShuffle shuffle_;
  Divider run_;
  Divider streams_;
  Divider window_samples_;
  Divider block_samples_;        // uniform
  uint64_t stream_samples_ = 0;  // of each of the equal streams
  uint64_t key_ = 0;
  Permutation blocks_;
  uint64_t short_rank_ = 0;       // uniform: where the last, shorter block went
  std::vector<uint64_t> firsts_;  // ragged: FirstLaid of every rank, then samples
  std::vector<Window> windows_;   // the last one used of each stream
};

}  // namespace forebay::order
