#include "order/block_order.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "order/lanes.h"

namespace forebay::order {
namespace {

constexpr uint64_t kStreamsKept = 4096;  // windows remembered
constexpr uint64_t kBlocksKept = 4096;   // of each
constexpr size_t kFewBlocks = 32;        // of a window: looked at one by one

}  // namespace

BlockOrder::BlockOrder(std::shared_ptr<const BlockTable> table, const BlockShuffle& shuffle,
                       uint64_t key)
    : table_(std::move(table)),
      shuffle_(shuffle),
      key_(key),
      blocks_(table_->blocks(), DeriveKey(key, HashName("blocks/v1"))) {
  FB_ASSERT(shuffle.window_blocks > 0 && shuffle.streams > 0 && shuffle.run > 0);
  const uint64_t samples = table_->samples();
  const Wide wanted = table_->blocks() == 0
                          ? Wide{1}
                          : static_cast<Wide>(samples) * shuffle.window_blocks / table_->blocks();
  window_samples_ =
      Divider(std::max<uint64_t>(1, static_cast<uint64_t>(std::min<Wide>(wanted, samples))));
  run_ = Divider(shuffle.run);
  streams_ = Divider(shuffle.streams);
  const Wide round = static_cast<Wide>(shuffle.streams) * shuffle.run;
  stream_samples_ =
      round > samples ? 0
                      : static_cast<uint64_t>(samples / static_cast<uint64_t>(round)) * shuffle.run;
  windows_.resize(std::min(shuffle.streams, kStreamsKept) + 1);
  if (table_->uniform()) {
    block_samples_ = Divider(table_->uniform_samples());
    if (table_->blocks() > 0) short_rank_ = blocks_.Inverse(table_->blocks() - 1);
    return;
  }
  firsts_.reserve(table_->blocks() + 1);
  uint64_t laid = 0;
  for (uint64_t rank = 0; rank < table_->blocks(); ++rank) {
    firsts_.push_back(laid);
    laid += table_->SizeOf(blocks_.At(rank));
  }
  firsts_.push_back(laid);
}

BlockOrder::InStream BlockOrder::StreamAt(uint64_t position) const {
  FB_ASSERT(position < table_->samples());
  const uint64_t equal = stream_samples_ * shuffle_.streams;
  if (position >= equal) {
    return {shuffle_.streams, position - equal, equal, table_->samples() - equal};
  }
  const uint64_t turn = run_.Quotient(position);
  const uint64_t round = streams_.Quotient(turn);
  const uint64_t stream = turn - round * shuffle_.streams;
  return {stream, round * shuffle_.run + (position - turn * shuffle_.run), stream * stream_samples_,
          stream_samples_};
}

BlockOrder::InStream BlockOrder::StreamHolding(uint64_t laid) const {
  const uint64_t equal = stream_samples_ * shuffle_.streams;
  if (laid >= equal) {
    return {shuffle_.streams, laid - equal, equal, table_->samples() - equal};
  }
  const uint64_t stream = laid / stream_samples_;
  return {stream, laid % stream_samples_, stream * stream_samples_, stream_samples_};
}

uint64_t BlockOrder::PositionIn(const InStream& place) const {
  if (place.stream == shuffle_.streams) return place.first + place.index;
  const uint64_t turn = place.index / shuffle_.run * shuffle_.streams + place.stream;
  return turn * shuffle_.run + place.index % shuffle_.run;
}

const BlockOrder::Window& BlockOrder::WindowAt(const InStream& place, uint64_t window) {
  Window& kept = windows_[place.stream % windows_.size()];
  if (kept.stream != place.stream || kept.window != window || !kept.permutation) {
    const uint64_t most = window_samples_.divisor();
    const uint64_t size = std::min(most, place.length - window * most);
    kept.permutation.emplace(
        size, DeriveKey(DeriveKey(DeriveKey(key_, HashName("window/v1")), place.stream), window));
    kept.stream = place.stream;
    kept.window = window;
    const uint64_t first = place.first + window * most;
    kept.first_rank = RankOfLaid(first);
    const uint64_t count = RankOfLaid(first + size - 1) - kept.first_rank + 1;
    kept.blocks.clear();
    for (uint64_t i = 0; count <= kBlocksKept && i < count; ++i) {
      const uint64_t rank = kept.first_rank + i;
      kept.blocks.push_back({FirstLaid(rank), table_->FirstOf(blocks_.At(rank))});
    }
    kept.thresholds.clear();
    kept.deltas.clear();
    uint64_t added = 0;
    for (const Window::Block& block : kept.blocks) {
      if (kept.blocks.size() > kFewBlocks) break;
      kept.thresholds.push_back(block.first_laid);
      kept.deltas.push_back(block.first_sample - block.first_laid - added);
      added += kept.deltas.back();
    }
  }
  return kept;
}

uint64_t BlockOrder::FirstLaid(uint64_t rank) const {
  if (!table_->uniform()) return firsts_[rank];
  const uint64_t lacking =
      rank > short_rank_ ? table_->uniform_samples() - table_->SizeOf(table_->blocks() - 1) : 0;
  return rank * table_->uniform_samples() - lacking;
}

uint64_t BlockOrder::RankOfLaid(uint64_t laid) const {
  if (!table_->uniform()) {
    return static_cast<uint64_t>(std::ranges::upper_bound(firsts_, laid) - firsts_.begin()) - 1;
  }
  const uint64_t size = table_->uniform_samples();
  const uint64_t last = table_->SizeOf(table_->blocks() - 1);
  const uint64_t short_first = short_rank_ * size;
  if (laid < short_first) return block_samples_.Quotient(laid);
  return laid < short_first + last ? short_rank_ : block_samples_.Quotient(laid + (size - last));
}

uint64_t BlockOrder::At(uint64_t position) {
  const InStream place = StreamAt(position);
  const uint64_t number = window_samples_.Quotient(place.index);
  const uint64_t first = number * window_samples_.divisor();
  const Window& window = WindowAt(place, number);
  return SampleAt(window, place.first + first + window.permutation->At(place.index - first));
}

// Those of one run in one window are permuted together.
void BlockOrder::AtEach(uint64_t first, std::span<uint64_t> samples) {
  for (size_t done = 0; done < samples.size();) {
    const uint64_t position = first + done;
    const InStream place = StreamAt(position);
    const uint64_t number = window_samples_.Quotient(place.index);
    const uint64_t begin = number * window_samples_.divisor();
    uint64_t count =
        std::min<uint64_t>(samples.size() - done, begin + window_samples_.divisor() - place.index);
    if (place.stream != shuffle_.streams) {
      count = std::min(count, (run_.Quotient(position) + 1) * shuffle_.run - position);
    }
    const auto part = samples.subspan(done, count);
    for (uint64_t i = 0; i < count; ++i) part[i] = place.index - begin + i;
    const Window& window = WindowAt(place, number);
    window.permutation->AtEach(part);
    for (uint64_t& sample : part) sample += place.first + begin;
    SamplesAt(window, part);
    done += count;
  }
}

// Of a few blocks all are looked at, as nothing can be guessed of where a random place lies.
const BlockOrder::Window::Block& BlockOrder::Window::Holding(uint64_t laid) const {
  if (blocks.size() > kFewBlocks) {
    return *std::prev(std::ranges::upper_bound(blocks, laid, {}, &Block::first_laid));
  }
  size_t after = 0;
  for (const Block& block : blocks) after += block.first_laid <= laid ? 1 : 0;
  return blocks[after - 1];
}

uint64_t BlockOrder::SampleAt(const Window& window, uint64_t laid) const {
  if (window.blocks.empty()) {
    const uint64_t rank = RankOfLaid(laid);
    return table_->FirstOf(blocks_.At(rank)) + (laid - FirstLaid(rank));
  }
  const auto& blocks = window.blocks;
  const Window::Block& block =
      table_->uniform() ? blocks[RankOfLaid(laid) - window.first_rank] : window.Holding(laid);
  return block.first_sample + (laid - block.first_laid);
}

// SampleAt of each.
void BlockOrder::SamplesAt(const Window& window, std::span<uint64_t> laid) const {
  size_t done = 0;
  if (!window.thresholds.empty() && HasLanes()) {
    done = laid.size() / kLanes * kLanes;
    AddStepsLanes(window.thresholds, window.deltas, laid.first(done));
  }
  for (uint64_t& sample : laid.subspan(done)) sample = SampleAt(window, sample);
}

uint64_t BlockOrder::PositionOf(uint64_t sample) {
  const uint64_t block = table_->BlockOf(sample);
  const uint64_t laid = FirstLaid(blocks_.Inverse(block)) + (sample - table_->FirstOf(block));
  InStream place = StreamHolding(laid);
  const uint64_t window = window_samples_.Quotient(place.index);
  const uint64_t first = window * window_samples_.divisor();
  place.index = first + WindowAt(place, window).permutation->Inverse(place.index - first);
  return PositionIn(place);
}

uint64_t BlockOrder::WindowOf(uint64_t position) const {
  const InStream place = StreamAt(position);
  return place.stream << 40 | window_samples_.Quotient(place.index);
}

}  // namespace forebay::order
