// How the samples of a data set lie in blocks: a shard, or a few MiB of one, that one range read
// serves. Samples are numbered through, block after block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forebay::order {

// Immutable.
class BlockTable {
 public:
  // Blocks of `block_samples` (> 0) samples, the last one shorter. No memory.
  static BlockTable Uniform(uint64_t samples, uint64_t block_samples);
  // Samples per block; empty blocks are allowed.
  static BlockTable Ragged(std::span<const uint64_t> block_samples);

  uint64_t samples() const { return samples_; }
  uint64_t blocks() const { return blocks_; }
  bool uniform() const { return firsts_.empty(); }
  uint64_t uniform_samples() const { return block_samples_; }  // per block, where uniform
  uint64_t FirstOf(uint64_t block) const;
  uint64_t SizeOf(uint64_t block) const;
  // sample < samples(). The block that holds it.
  uint64_t BlockOf(uint64_t sample) const;

 private:
  BlockTable() = default;

  uint64_t samples_ = 0;
  uint64_t blocks_ = 0;
  uint64_t block_samples_ = 0;
  std::vector<uint64_t> firsts_;  // ragged: per block its first sample, then samples_
};

}  // namespace forebay::order
