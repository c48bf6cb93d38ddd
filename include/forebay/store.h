// Objects by URI, synchronously: what `forebay ls | stat | cat | cp` are made of.
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

struct ObjectStat {
  std::string uri;
  uint64_t size = 0;
  std::string etag;
  int64_t modified_unix_s = 0;  // 0: the store does not say
  bool is_prefix = false;       // a common prefix ("directory") of a delimited listing
};

// What lies where an object would, and is none: in a folder, a link to nothing or a FIFO.
struct ObjectSkip {
  std::string uri;
  std::string why;
};

struct CopyProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
  uint64_t objects_done = 0;
  uint64_t objects_total = 0;
};

struct CopyOptions {
  bool recursive = false;
  // On the caller's thread, every 50 ms. False: stop at once (kCancelled).
  std::function<bool(const CopyProgress&)> on_progress;
};

struct CopyReport {
  uint64_t objects_copied = 0;
  uint64_t objects_skipped = 0;  // already there with the same size and content
  uint64_t objects_failed = 0;
  uint64_t objects_left_out = 0;  // not copied, because they are no objects
  uint64_t bytes_copied = 0;
  std::vector<Status> failures;      // the first 100
  std::vector<ObjectSkip> left_out;  // the first 100
};

// Thread safety: all methods from any thread. Blocking: up to StoreOptions::request_timeout_ms a
// request, longer by bytes moved. Errors: as in forebay/status.h, with uri, range, attempt, request
// id.
class FOREBAY_API Store {
 public:
  static Result<std::unique_ptr<Store>> Open(const StoreOptions& options);
  virtual ~Store() = default;

  virtual Result<ObjectStat> Stat(const std::string& uri) = 0;
  // `recursive`: every object below; otherwise one level, prefixes marked. `visit` false: stop.
  // A path that names nothing is kNotFound; a prefix below which there is nothing is an empty list.
  // `on_skip`: told of what is no object, when given.
  virtual Status List(const std::string& uri, bool recursive,
                      const std::function<bool(const ObjectStat&)>& visit,
                      const std::function<void(const ObjectSkip&)>& on_skip = nullptr) = 0;
  // Exactly into.size() bytes from `offset`; `etag` "" reads whatever version is there.
  virtual Status ReadRange(const std::string& uri, const std::string& etag, uint64_t offset,
                           std::span<std::byte> into) = 0;
  virtual Result<std::string> Put(const std::string& uri, std::span<const std::byte> body) = 0;
  virtual Status Delete(const std::string& uri) = 0;
  // One object or, recursively, a prefix, between any two stores. Verified (length and ETag pinned
  // through the whole read), parallel, resumable; local files appear under their final name only
  // when whole.
  virtual Result<CopyReport> Copy(const std::string& from, const std::string& to,
                                  const CopyOptions& options) = 0;
};

}  // namespace forebay
