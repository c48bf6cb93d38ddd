// The training loop's end of Forebay: batches in order, fetched and decoded ahead.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "forebay/dataset.h"
#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

struct LoaderOptions {
  OrderOptions order;
  PlaceOptions place;
  int64_t epochs = -1;  // -1: no end
  uint64_t memory_bytes = 2ULL << 30;
  // Seconds of data kept ready; < 0: found from measurements ("auto"); 0: nothing is fetched ahead
  // (a step's own ranges still go out in parallel).
  double runway_s = -1;
  int decode_threads = 0;        // 0: cores - 1, at least 1
  int held_limit = 4;            // delivered batches not yet given back
  int64_t skip_max = 0;          // bad samples replaced before it becomes an error; 0: raise
  bool content_digest = false;   // LoaderState::content is kept; costs a pass over the arrays
  int64_t digest_log_steps = 0;  // a line of log (info) with the digests every so many; 0: none
};

// One array of a batch; shape and element size fixed for the loader's life.
struct ArraySpec {
  std::string name;
  std::string dtype;  // "uint8", "int64", "int32", "bool", "float32"
  // With the batch dimension first. {-1}: samples differ in size and lie one after the other; the
  // array behind it says where each begins, and where the last one ends.
  std::vector<int64_t> shape;
};

struct Array {
  const ArraySpec* spec = nullptr;
  int64_t rows = 0;             // the shape's first dimension in place of spec's: of this batch
                                // (other only in the last one of an epoch without drop_last, and
                                // where samples differ in size)
  std::shared_ptr<void> owner;  // keeps the bytes alive, the loader itself is not needed
  void* data = nullptr;
  size_t bytes = 0;
};

struct Batch {
  std::vector<Array> arrays;  // in the order of Loader::arrays()
  int64_t step = 0;           // of this epoch
  int64_t epoch = 0;
};

// From this position of the run on (samples over all epochs), the sources have these weights.
struct MixtureWeights {
  uint64_t start = 0;
  std::vector<uint64_t> weights;
};

// One source in a state.
struct SourceState {
  std::string name;
  std::string spec;  // "clips/1 pattern=... frames=8 ...": what a sample of it is
  std::string catalog_hash;
  uint64_t samples = 0;
  // Of a source that has been appended to while the run was on: what it had from when on. Empty:
  // `samples`, from the start.
  std::vector<SourceGrowth> sizes;
};

// A position: everything needed to go on elsewhere. The same on every rank, but for `skips`,
// `replaced` and `content`.
struct LoaderState {
  int schema = 2;
  std::string spec_hash;     // of `spec` and the sources
  std::string catalog_hash;  // of all sources'
  std::string spec;          // "order/1 shuffle=global tail=drop ..."
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;  // samples of this epoch handed out, over all ranks
  std::string digest;    // of the samples handed out so far, over all ranks and epochs
  std::vector<SourceState> sources;
  std::vector<MixtureWeights> mixture;  // empty: one source
  std::vector<int64_t> skips;           // positions of this epoch whose sample this rank replaced
  // The different samples that this rank has replaced since the run began, each as (source,
  // sample): what LoaderOptions::skip_max counts.
  std::vector<std::pair<int64_t, int64_t>> replaced;
  // Of the arrays of the rows that this rank was given since it was made or a state was loaded,
  // padding left out; "": not kept. Loading passes it over. A sum modulo 2^64: those of all ranks
  // and stretches added up are the run's, whatever ranks and batches there were.
  std::string content;
};

// Thread safety: one consumer thread; Metrics, Close and the const methods from any. No thread of
// its own lives before the first Next or WaitReady, so that a fork until then is harmless. Errors
// of Next: see status.h, with the sample, key, range and request id. Blocking: Next waits until its
// deadline at most.
class FOREBAY_API Loader {
 public:
  // One source, or a mixture of several. Errors: kInvalidArgument (options; sources whose arrays
  // differ), kNotFound (no catalog, no sample), and the store's.
  static Result<std::unique_ptr<Loader>> Make(const std::vector<SourceOptions>& sources,
                                              const LoaderOptions& options,
                                              const StoreOptions& store);
  virtual ~Loader() = default;

  virtual const std::vector<ArraySpec>& arrays() const = 0;
  virtual int64_t sample_count() const = 0;
  // 0 for an order that is supplied.
  virtual int64_t batches_per_epoch() const = 0;
  // Of this epoch, that Next has not returned; of an order that is supplied, those that are there.
  virtual int64_t batches_left() const = 0;
  // The next batch; nullopt at the end of an epoch (the next call begins the next epoch; after the
  // last epoch it stays nullopt). A batch that failed is not consumed: the next call asks for it
  // again, and State names its place.
  virtual Result<std::optional<Batch>> Next(std::chrono::nanoseconds timeout) = 0;
  // True: Next would answer without waiting (a batch, an epoch's end, or an error). Starts the
  // work as Next does. The way to wait in slices: kDeadlineExceeded of Next may also be a store's.
  virtual bool WaitReady(std::chrono::nanoseconds timeout) = 0;
  // From now on: epoch `epoch`, from its start. Pending work of the old position is dropped.
  virtual Status SetEpoch(int64_t epoch) = 0;
  virtual LoaderState State() const = 0;
  // A source may have been appended to since (`forebay index --append`): an epoch of it that has
  // begun ends with the samples that it had, and the next one has them all. Errors:
  // kInvalidArgument naming the field that differs.
  virtual Status LoadState(const LoaderState& state) = 0;
  // From the next batch on the sources have these weights, by source; each goes on where it is.
  // Errors: kInvalidArgument (not a mixture, other than one weight per source, none above 0).
  virtual Status SetWeights(const std::vector<double>& weights) = 0;

  // With ShuffleKind::kExternal the order is the caller's: Next delivers the batches that were
  // supplied, fetched ahead as far as they were, and asking for one that was not is an error.
  // This rank's samples alone: world size and rank play no part, State counts and digests what this
  // loader delivered, and SetEpoch and LoadState forget what was supplied.
  // The batch behind those supplied before: 1 to place.batch_size samples of the catalog. Errors:
  // kInvalidArgument, kResourceExhausted (thousands are waiting).
  virtual Status Supply(std::span<const int64_t> samples) = 0;
  // The epoch ends behind the last batch supplied.
  virtual Status SupplyEnd() = 0;

  // For joining tables by scene and time. The names of a source's scenes: the values of the
  // pattern's names other than {camera}, joined by '/'; sorted.
  virtual const std::vector<std::string>& scenes(size_t source) const = 0;
  // Of each of a source's samples (indices as in `_sample`): its scene, the presentation times in
  // seconds of its frames in the first camera, and half a frame's duration there. Sizes: n, n *
  // frames, n. Errors: kInvalidArgument for a number out of range.
  virtual Status SampleTimes(size_t source, std::span<const int64_t> samples,
                             std::span<int32_t> scene, std::span<double> times,
                             std::span<double> half_frame) const = 0;
  // Of plain objects: the keys of samples [first, first + count), relative to the data set's root.
  // Errors: kInvalidArgument; those of reading the catalog.
  virtual Result<std::vector<std::string>> SampleNames(size_t source, int64_t first,
                                                       int64_t count) const = 0;
  // Why the runway is what it is, in one line with its numbers.
  virtual std::string RunwayReason() const = 0;
  // Flat: "forebay_stall_seconds_total" and so on. Zeros before the first Next; after Close, and
  // while the engine does not answer within a second, the last numbers known.
  virtual std::map<std::string, double> Metrics() const = 0;
  // Idempotent. Next returns kCancelled afterwards; arrays already taken stay valid.
  virtual void Close() = 0;
};

}  // namespace forebay
