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
#include <vector>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

// Clips of several cameras: one sample is `frames` frames, `step` apart, of every camera of a
// scene, starting every `hop` frames of the first camera; the other cameras are aligned to it by
// time (within half a frame).
struct ClipsOptions {
  std::string uri;
  std::string pattern = "{scene}/{camera}.mp4";  // "{name}" matches one path element's part
  std::vector<std::string> cameras;              // empty: all that the pattern finds, sorted
  int frames = 8;
  int step = 1;
  int hop = 1;
  int width = 0, height = 0;  // resize; 0: as the stream
  bool chw = false;           // TCHW instead of THWC
  std::string catalog;        // URI; "": SRC/.forebay/catalog.fbc, then the local cache folder
};

struct LoaderOptions {
  int64_t batch_size = 1;  // per rank
  uint64_t seed = 0;
  int64_t epochs = -1;  // -1: no end
  bool shuffle = true;
  bool drop_last = true;
  int64_t rank = 0;
  int64_t world_size = 1;
  uint64_t memory_bytes = 2ULL << 30;
  // Seconds of data kept ready; < 0: found from measurements ("auto"); 0: nothing is fetched ahead
  // (a step's own ranges still go out in parallel).
  double runway_s = -1;
  int decode_threads = 0;  // 0: cores - 1, at least 1
  int held_limit = 4;      // delivered batches not yet given back
  int64_t skip_max = 0;    // bad samples replaced before it becomes an error; 0: raise
};

// One array of a batch; shape and element size fixed for the loader's life.
struct ArraySpec {
  std::string name;
  std::string dtype;           // "uint8", "int64", "int32", "bool", "float32"
  std::vector<int64_t> shape;  // with the batch dimension first
};

struct Array {
  const ArraySpec* spec = nullptr;
  int64_t rows = 0;             // of this batch: the shape's first dimension in place of spec's
                                // (smaller only in the last batch of an epoch without drop_last)
  std::shared_ptr<void> owner;  // keeps the bytes alive, the loader itself is not needed
  void* data = nullptr;
  size_t bytes = 0;
};

struct Batch {
  std::vector<Array> arrays;  // in the order of Loader::arrays()
  int64_t step = 0;           // of this epoch
  int64_t epoch = 0;
};

// A position: everything needed to go on elsewhere.
struct LoaderState {
  int schema = 1;
  std::string spec_hash;
  std::string catalog_hash;
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;        // samples of this epoch handed out, over all ranks
  std::vector<int64_t> skips;  // global positions whose sample was replaced
};

// Thread safety: one consumer thread; Metrics, Close and the const methods from any. No thread of
// its own lives before the first Next or WaitReady, so that a fork until then is harmless. Errors
// of Next: see status.h, with the sample, key, range and request id. Blocking: Next waits until its
// deadline at most.
class FOREBAY_API Loader {
 public:
  static Result<std::unique_ptr<Loader>> MakeClips(const ClipsOptions& clips,
                                                   const LoaderOptions& options,
                                                   const StoreOptions& store);
  virtual ~Loader() = default;

  virtual const std::vector<ArraySpec>& arrays() const = 0;
  virtual int64_t sample_count() const = 0;
  virtual int64_t batches_per_epoch() const = 0;
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

  // For joining tables by scene and time. The scenes' names are the values of the pattern's
  // placeholders other than {camera}, joined by '/'; sorted.
  virtual const std::vector<std::string>& scenes() const = 0;
  // Of each sample (an index as in `_sample`): its scene, the presentation times in seconds of its
  // frames in the first camera, and half a frame's duration there. Sizes: n, n * frames, n.
  // Errors: kInvalidArgument for a number out of range.
  virtual Status SampleTimes(std::span<const int64_t> samples, std::span<int32_t> scene,
                             std::span<double> times, std::span<double> half_frame) const = 0;
  // Errors: kInvalidArgument naming the field that differs.
  virtual Status LoadState(const LoaderState& state) = 0;
  // Why the runway is what it is, in one line with its numbers.
  virtual std::string RunwayReason() const = 0;
  // Flat: "forebay_stall_seconds_total" and so on. Zeros before the first Next; after Close, and
  // while the engine does not answer within a second, the last numbers known.
  virtual std::map<std::string, double> Metrics() const = 0;
  // Idempotent. Next returns kCancelled afterwards; arrays already taken stay valid.
  virtual void Close() = 0;
};

}  // namespace forebay
