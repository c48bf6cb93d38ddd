// The order of a run without running it: which samples stand where, and the proof that each comes
// as often as it should.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay/dataset.h"
#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

// A sample at its place.
struct OrderEntry {
  int64_t position = 0;  // in the epoch, over all ranks
  int32_t source = 0;
  int64_t sample = 0;  // of its source's catalog
  bool pad = false;    // repeats an earlier one of the epoch
};

// So many batches on so many ranks, then the next stretch: what a run that was resumed on other
// machines did.
struct OrderStretch {
  PlaceOptions place;   // rank does not matter
  int64_t batches = 0;  // 0: to the end of the epoch
};

struct OrderProof {
  int64_t samples = 0;    // of the epoch
  int64_t batches = 0;    // of every rank
  int64_t delivered = 0;  // rows of all ranks, padding included
  int64_t padded = 0;     // declared repeats
  int64_t dropped = 0;    // declared: the tail that fills no batch
  std::string digest;     // of the samples handed out, in order
  // Empty: every position came exactly once, and each source's samples as often as its order says,
  // but for what is declared above.
  std::vector<std::string> violations;
};

// What an order costs and how well it mixes, by going through part of an epoch.
struct OrderPrice {
  int64_t samples = 0;               // looked at, of rank 0
  double gets_per_sample = 0;        // of a rank that reads whole blocks and keeps its windows
  double samples_read_per_used = 0;  // what it reads, in samples, for each one it uses
  double blocks_per_batch = 0;       // distinct ones in a global batch
  // How far a batch is from an even share of the data: the total variation distance between the
  // batch's histogram over 100 equal slices of the catalog and an even one, mean over batches; and
  // the same for a global shuffle, which is the least that chance allows.
  double distance = 0;
  double distance_of_global = 0;
};

// Thread safety: one thread.
class FOREBAY_API Order {
 public:
  // How a source grew while the run went on, as in the `sizes` of a state; empty: not at all.
  using Growth = std::vector<SourceGrowth>;

  // Reads catalogs, nothing else. `growth`: one for each source, or none. Errors: as Loader::Make;
  // kInvalidArgument for a size that the source never had.
  static Result<std::unique_ptr<Order>> Open(const std::vector<SourceOptions>& sources,
                                             const OrderOptions& options, const StoreOptions& store,
                                             const std::vector<Growth>& growth = {});
  // Of so many samples in blocks of `block_samples`, without any data; `growth` in place of
  // `samples` where it is given.
  static Result<std::unique_ptr<Order>> OfCount(int64_t samples, int64_t block_samples,
                                                const OrderOptions& options,
                                                const Growth& growth = {});
  virtual ~Order() = default;

  virtual int64_t EpochSamples(int64_t epoch) const = 0;
  virtual const std::vector<std::string>& source_names() const = 0;
  virtual int64_t SourceSamples(int32_t source) const = 0;  // at its largest
  // "scene a, front at 3.2 s"; "" where there is no data.
  virtual std::string Describe(int32_t source, int64_t sample) const = 0;
  // The rows of batch `step` of an epoch that are this rank's; nothing behind the epoch's end.
  virtual Result<std::vector<OrderEntry>> Batch(const PlaceOptions& place, int64_t epoch,
                                                int64_t step) = 0;
  // Positions of a sample in an epoch, growing. Errors: kInvalidArgument (also over 2^24 of them).
  virtual Result<std::vector<int64_t>> Find(int64_t epoch, int32_t source, int64_t sample) = 0;
  // What LoaderState::digest is after these epochs, from 0 on, and `position` samples of the next.
  virtual Result<std::string> Digest(int64_t epochs, int64_t position) = 0;
  // Goes through all ranks of an epoch. Memory: 4 bytes for each sample of a source and a bit for
  // each of the epoch. Errors: kInvalidArgument (over 2^32 samples).
  virtual Result<OrderProof> Verify(const std::vector<OrderStretch>& chain, int64_t epoch) = 0;
  // Errors: kUnimplemented for a mixture.
  virtual Result<OrderPrice> Price(const PlaceOptions& place, int64_t epoch) = 0;
};

}  // namespace forebay
