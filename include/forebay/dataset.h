// What is trained from: the data sets that a loader, an order or a check is made for.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "forebay/ops.h"
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

// Records of a container format, through ops or as they are.
struct RecordsOptions {
  std::string uri;
  // "files": every object of the listing is a sample, in an array "bytes" (uint8 [total]) with
  // "offsets" (int64 [B + 1]). "tar" and other formats of shards (docs/formats/): as the catalog
  // was made; a field that no op takes comes as arrays NAME and NAME_offsets, or, where it is the
  // only array, as those of "files". "": whatever the catalog is of.
  std::string format = "files";
  // The fields; empty: those that every record has, of files "bytes". Files also have "label": the
  // number of the folder right below `uri`, in the order of their names.
  std::vector<std::string> columns;
  std::vector<Op> ops;
  std::string catalog;       // as in ClipsOptions
  std::string s3_data_type;  // what `uri` names: as it was indexed, see IndexOptions
  // SageMaker's ShardedByS3Key: of the catalog's objects this host takes `host`, `host` + `hosts`,
  // `host` + 2 * `hosts`, ...; 1: all of them.
  int64_t host = 0;
  int64_t hosts = 1;
};

// From this epoch of a source on it has so many samples.
struct SourceGrowth {
  uint64_t from_epoch = 0;
  uint64_t samples = 0;
  bool operator==(const SourceGrowth&) const = default;
};

// One of the data sets of a run.
struct SourceOptions {
  std::string name;  // may be empty where there is but one
  std::variant<ClipsOptions, RecordsOptions> data;
  double weight = 1;  // its share of a mixture's samples, beside the others' weights
};

enum class ShuffleKind : uint8_t {
  kNone,      // the catalog's order
  kGlobal,    // every order of the samples is possible; each sample is a read of its own
  kBlocks,    // blocks of neighbouring samples are permuted, then shuffled inside a window
  kExternal,  // somebody else's: see Loader::Supply
};

// For kBlocks. All are part of the order, whatever the number of ranks.
struct BlockShuffleOptions {
  int64_t window = 16;  // blocks that are open at a time, in each stream
  int64_t streams = 1;  // with as many ranks as streams each rank reads its own
  int64_t run = 64;     // positions taken from one stream before the next: at best the batch size
};

// What becomes of the samples at an epoch's end that fill no whole batch on every rank. All ranks
// take equally many batches in each case.
enum class TailRule : uint8_t {
  kDrop,    // they are left out
  kPad,     // the last batch repeats samples from the epoch's start, marked in `_pad`
  kRagged,  // the last batch is shared out as it is: some ranks get a row less, or none
};

// The order of a run: together with the data sets it decides which sample stands at which position.
struct OrderOptions {
  uint64_t seed = 0;
  ShuffleKind shuffle = ShuffleKind::kGlobal;
  BlockShuffleOptions blocks;
  TailRule tail = TailRule::kDrop;
  // Samples of an epoch, over all ranks; 0: those of all sources. Fewer: the next epoch goes on
  // where this one ends. More: a source starts over, in another order.
  int64_t epoch_samples = 0;
  int64_t mixture_block = 0;  // positions in which every source's share is exact; 0: found

  Status Validate() const;
};

// A rank's place. Ranks that must see the same data (tensor, pipeline, context parallel) stand side
// by side: `replicas` of them share a slice.
struct PlaceOptions {
  int64_t batch_size = 1;  // per rank
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t replicas = 1;
  // Of this rank's batches only each `step_stride`th, from number `step_offset` of an epoch on:
  // what one of several processes that work for a rank takes.
  int64_t step_stride = 1;
  int64_t step_offset = 0;

  Status Validate() const;
};

}  // namespace forebay
