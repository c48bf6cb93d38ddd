// The order of a whole run: epoch and position -> source and sample. A pure function of its spec;
// positions count samples over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/status.h"
#include "order/mixture.h"
#include "order/source_stream.h"

namespace forebay::order {

struct RunSource {
  std::string name;  // may be empty where there is but one source
  Shuffle shuffle = GlobalShuffle{};
  std::vector<SourceSize> sizes;
};

struct RunSpec {
  uint64_t seed = 0;
  std::vector<RunSource> sources;
  // Positions of one epoch. 0: the samples of all sources together (as they are in the first epoch;
  // a single source's own number in every epoch). Fewer than a source has: the next epoch goes on
  // where this one ends; more: the source starts over in another order.
  uint64_t epoch_samples = 0;
  // With several sources: who gets which share.
  uint64_t mixture_block = 1000;
  std::vector<MixturePiece> mixture;  // starts count positions over all epochs
};

// What stands at a position.
struct Place {
  uint32_t source = 0;
  uint64_t sample = 0;
  uint64_t source_epoch = 0;  // how often the source had been used up
  bool operator==(const Place&) const = default;
};

// Not thread-safe: keeps what it computed last. Every owner makes its own.
class RunOrder {
 public:
  // Errors: kInvalidArgument naming what is wrong with the spec.
  static Result<RunOrder> Make(const RunSpec& spec);

  uint64_t EpochSamples(uint64_t epoch) const;
  // position < EpochSamples(epoch).
  Place At(uint64_t epoch, uint64_t position);
  // Of the positions from `first` on, all of that epoch.
  void AtEach(uint64_t epoch, uint64_t first, std::span<Place> places);
  // Whether an epoch of the run is one of its only source.
  bool natural() const { return epoch_samples_ == 0; }
  // As AtEach, of a natural order: the source's samples.
  void SamplesAt(uint64_t epoch, uint64_t first, std::span<uint64_t> samples) {
    streams_.front().Order(epoch).SamplesAt(first, samples);
  }
  // The positions of a sample in that epoch of the run, growing; it may come not at all, or more
  // than once.
  std::vector<uint64_t> Find(uint64_t epoch, uint32_t source, uint64_t sample);
  // A number that grows with time: when this sample comes next after that position.
  uint64_t NextUse(uint64_t epoch, uint64_t position);
  // What stands in for a bad sample: another of the same source.
  Place SubstituteFor(const Place& bad, uint64_t epoch, uint64_t position, uint64_t attempt);
  // Numbers of each source that come before that position of the run.
  std::vector<uint64_t> CountsBefore(uint64_t epoch, uint64_t position);
  // Of each source, the first of its epochs that has not begun at that position of the run.
  std::vector<uint64_t> EpochsToCome(uint64_t epoch, uint64_t position);
  size_t sources() const { return streams_.size(); }

 private:
  RunOrder() = default;
  uint64_t Global(uint64_t epoch, uint64_t position) const {
    return epoch * epoch_samples_ + position;
  }
  struct Number {
    uint32_t source = 0;
    uint64_t index = 0;  // in the source's stream
  };
  Number NumberAt(uint64_t epoch, uint64_t position);
  std::optional<uint64_t> GlobalOf(uint32_t source, uint64_t index);

  std::vector<uint64_t> samples_;  // scratch
  std::vector<SourceStream> streams_;
  std::optional<Mixture> mixture_;
  uint64_t epoch_samples_ = 0;  // 0: natural
};

}  // namespace forebay::order
