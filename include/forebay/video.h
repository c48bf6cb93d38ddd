// Video indexes and exact frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

struct IndexProgress {
  uint64_t objects_done = 0;
  uint64_t objects_total = 0;
  uint64_t bytes_read = 0;
};

struct IndexOptions {
  std::string out;  // catalog URI; "": SRC/.forebay/catalog.fbc
  // "video"; "files": every object is a sample, and none is read; "tar" and the other formats of
  // shards of records: docs/formats/. "auto": told by the content of a few objects (those that are
  // named like videos before others), and files where it is neither.
  std::string format = "auto";
  // What the source names. "": a folder, all that is below it. Else, of files, as SageMaker defines
  // it: "S3Prefix", all whose keys begin so; "ManifestFile" or "AugmentedManifestFile", the objects
  // of that list, in its order.
  std::string s3_data_type;
  // Files only. The order of the samples: "bytes" of their keys, or as "listed" by the store.
  std::string key_order = "bytes";
  // Not of videos: the samples of the catalog that is there keep their numbers, those of new
  // objects come behind them. One that has changed or is gone is an error (kPreconditionFailed).
  bool append = false;
  // Of videos and shards: one of `shares` machines (0: there is but this) takes every `shares`th
  // object from number `share` on, and leaves a part of the catalog in CATALOG.parts/ for
  // MergeIndex.
  uint64_t share = 0;
  uint64_t shares = 0;
  // Of "tokens": their type in files that do not say it, "uint16" and so on.
  std::string dtype;
  // Of shards of records: what else is an error, and keeps a shard out. Where a format has it:
  // a last record that is cut is left out and told; behind the end of a tar archive another one
  // begins; of each TFRecord shard so many records whose data fail their checksum are left out and
  // told.
  bool drop_tail = false;
  bool concatenated = false;
  uint64_t max_damaged = 0;
  std::string verify = "heads";  // sync points: none, heads, full
  uint32_t parallel = 16;
  std::function<bool(const IndexProgress&)> on_progress;  // false: stop (kCancelled)
};

struct IndexFailure {
  std::string uri;
  std::string why;
};

// A field of records.
struct IndexField {
  std::string name;
  uint64_t records = 0;    // that have it
  uint64_t bytes_max = 0;  // the longest one's
};

struct IndexReport {
  std::string catalog_uri;
  std::string content_hash;
  uint64_t objects = 0, objects_failed = 0, objects_skipped = 0;
  uint64_t videos = 0, frames = 0;
  uint64_t dataset_bytes = 0, bytes_read = 0, requests = 0;
  uint64_t table_dataset_bytes = 0, table_bytes_read = 0;  // containers with a sample table only
  uint64_t index_bytes = 0;
  std::string format;        // as in IndexOptions
  uint64_t appended = 0;     // samples that the catalog did not have
  uint64_t generations = 1;  // how often it was indexed or appended to
  uint64_t shards = 0, records = 0;
  uint64_t oddities = 0;  // of shards: what is no error; the first ones are among the warnings
  std::vector<IndexField> fields;
  std::vector<IndexFailure> failures;
  std::vector<std::string> warnings;
};

// Builds and stores the catalog of what lies under `source`: of videos by range reads, of plain
// objects by one listing.
FOREBAY_API Result<IndexReport> BuildIndex(const std::string& source, const StoreOptions& store,
                                           const IndexOptions& options);

// Puts the parts together that BuildIndex of all shares has left: the catalog is the one that one
// machine would have made, byte for byte. `out`: as in IndexOptions. Errors: kNotFound (parts that
// are not there yet), kInvalidArgument (of data that have changed between them).
FOREBAY_API Result<IndexReport> MergeIndex(const std::string& source, const StoreOptions& store,
                                           const std::string& out);

// The formats of shards of records that there are: "tar" and others.
FOREBAY_API std::vector<std::string> RecordFormats();

// JSON text that describes an object: a catalog (.fbc), or a video (indexed on the spot). Sizes in
// bytes, times in seconds.
FOREBAY_API Result<std::string> InspectJson(const std::string& uri, const StoreOptions& store);

// Versions of the FFmpeg that decodes: "libavcodec 59.37.100, ..." Errors: kNotFound and the like
// where there is none.
FOREBAY_API Result<std::string> FfmpegVersion();

struct VideoOptions {
  int stream = -1;  // FFmpeg's stream index; -1: the first video stream
  std::string verify = "heads";
  int width = 0, height = 0;  // of Frames(); 0: as the stream
};

struct NativePicture {
  uint32_t frame = 0;
  int64_t pts = 0;  // INT64_MIN: none
  int width = 0, height = 0;
  std::string pixel_format;      // FFmpeg's name
  std::vector<std::byte> bytes;  // planes packed without padding, as framemd5 hashes them
};

// One video, frames by number or time, exact. Thread safety: one thread at a time. Blocking.
class FOREBAY_API Video {
 public:
  static Result<std::unique_ptr<Video>> Open(const std::string& uri, const StoreOptions& store,
                                             const VideoOptions& options);
  virtual ~Video() = default;
  virtual uint32_t frame_count() const = 0;
  virtual int width() const = 0;  // after rotation
  virtual int height() const = 0;
  virtual int stream() const = 0;
  virtual double time_base() const = 0;                  // seconds per unit of pts
  virtual const std::vector<double>& times() const = 0;  // seconds, per frame, from the container
  // The frame shown at `seconds`: the last whose time is <= seconds. kInvalidArgument when before
  // the first, or when times are not monotonic.
  virtual Result<uint32_t> FrameAt(double seconds) const = 0;
  // uint8 RGB [numbers.size(), height, width, 3] into `out`; any order, repeats allowed.
  virtual Status Frames(std::span<const uint32_t> numbers, std::span<std::byte> out) = 0;
  // Native pictures in ascending order of number.
  virtual Status NativeFrames(std::span<const uint32_t> numbers,
                              const std::function<Status(const NativePicture&)>& visit) = 0;
};

}  // namespace forebay
