// Many small files, or shards of another format, into shards that are read in large pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

struct PackProgress {
  uint64_t bytes_done = 0;  // of what is written, as planned
  uint64_t bytes_total = 0;
  uint64_t shards_done = 0;
  uint64_t shards_total = 0;
};

struct PackOptions {
  std::string to;  // PackFormats(): "tar", "tfrecord", ...
  // Of the source, as in IndexOptions; "files": neighbouring files of one key are a sample, by
  // WebDataset's rule.
  std::string format = "auto";
  std::string catalog;  // of the source, instead of indexing it
  // The source's shards are compressed as a whole (gzip, zlib, zstd): each is read and unpacked at
  // once.
  bool unpack = false;
  uint64_t shard_bytes = uint64_t{256} << 20;
  uint64_t memory = uint64_t{1} << 30;  // bounds the shards that are made at a time
  // One of `shares` machines makes every `shares`th shard from number `share` on; the one that is
  // done last writes the catalog.
  uint64_t share = 0;
  uint64_t shares = 1;
  // "source": those that the samples have, "number": the sample's number, "auto": the first of the
  // two that there is.
  std::string keys = "auto";
  // "folder": a field "cls" with the number of the sample's top folder among all, sorted; "none": a
  // label of 0 where the format must have one.
  std::string labels;
  // Fields to write: NAME, NAME=A|B|C (under a new name, the first that a sample has), and behind
  // it :TYPE (int, float, ... : a number kept as text becomes one; for MDS any of its encodings).
  // Empty: all.
  std::vector<std::string> columns;
  int64_t label_column = -1;  // of rows of numbers: which of them is the label; -1: none
  // Of LIBSVM's lines: how many features there are, and whether they are counted from 0, not 1.
  uint64_t sparse_columns = 0;
  bool zero_based = false;
  std::function<bool(const PackProgress&)> on_progress;  // false: stop (kCancelled)

  Status Validate() const;
};

struct PackReport {
  std::string source_uri, target_uri;
  std::string format;           // of the source, as it was found
  std::string catalog_uri;      // of what was written; "" until all shares are
  std::string manifest_uri;     // the same
  std::string content_hash;     // of that catalog
  uint64_t shards = 0;          // of all shares
  uint64_t shards_written = 0;  // now
  uint64_t shards_there = 0;    // from an earlier run
  uint64_t shards_missing = 0;  // of other shares, not there yet
  uint64_t samples = 0;
  uint64_t bytes_written = 0;
  uint64_t files_left_out = 0;  // that are no sample's, with a warning each
  std::vector<std::string> warnings;
};

FOREBAY_API std::vector<std::string> PackFormats();

// Shards of a data set below `target`, which must be empty but for what an earlier run of the same
// left, with their catalog. The shards' bytes are a function of source and options alone. What is
// visible is whole: the same call again goes on where one was stopped. Errors: kInvalidArgument
// (samples that the format cannot hold, named), kPreconditionFailed (the target holds other things,
// or the source has changed), kDataLoss, kCancelled, and the stores'.
FOREBAY_API Result<PackReport> Pack(const std::string& source, const std::string& target,
                                    const StoreOptions& store, const PackOptions& options);

}  // namespace forebay
