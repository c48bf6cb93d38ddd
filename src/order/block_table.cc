#include "order/block_table.h"

#include <algorithm>

#include "base/assert.h"

namespace forebay::order {

BlockTable BlockTable::Uniform(uint64_t samples, uint64_t block_samples) {
  FB_ASSERT(block_samples > 0);
  BlockTable table;
  table.samples_ = samples;
  table.block_samples_ = block_samples;
  table.blocks_ = samples / block_samples + (samples % block_samples > 0 ? 1 : 0);
  return table;
}

BlockTable BlockTable::Ragged(std::span<const uint64_t> block_samples) {
  BlockTable table;
  table.blocks_ = block_samples.size();
  table.firsts_.reserve(block_samples.size() + 1);
  for (const uint64_t samples : block_samples) {
    table.firsts_.push_back(table.samples_);
    table.samples_ += samples;
  }
  table.firsts_.push_back(table.samples_);
  return table;
}

uint64_t BlockTable::FirstOf(uint64_t block) const {
  FB_ASSERT(block < blocks_);
  return uniform() ? block * block_samples_ : firsts_[block];
}

uint64_t BlockTable::SizeOf(uint64_t block) const {
  FB_ASSERT(block < blocks_);
  if (!uniform()) return firsts_[block + 1] - firsts_[block];
  return std::min(block_samples_, samples_ - block * block_samples_);
}

uint64_t BlockTable::BlockOf(uint64_t sample) const {
  FB_ASSERT(sample < samples_);
  if (uniform()) return sample / block_samples_;
  const auto after = std::ranges::upper_bound(firsts_, sample);
  return static_cast<uint64_t>(after - firsts_.begin()) - 1;
}

}  // namespace forebay::order
