// What a store gives: bandwidth, latencies, errors and what they cost. `forebay bench store` is
// made of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

struct BenchOptions {
  uint64_t seed = 0;  // of the positions; 0: other ones in each run
  // This process's share of the requests, of so many that measure the same data at the same time.
  uint32_t share = 0, shares = 1;
  uint64_t buffer_bytes = 2ULL << 30;  // of all requests in flight together, at most
  uint32_t in_flight_limit = 4096;
};

// So many requests of one size, so many of them at a time.
struct BenchCell {
  bool put = false;
  uint64_t range_bytes = 8ULL << 20;
  uint32_t in_flight = 32;
  uint64_t requests = 0;  // of each share
  double seconds = 0;     // none is begun later than this; 0: no limit
};

struct BenchRun {
  uint64_t requests = 0;   // that ended, well or not
  uint64_t errors = 0;     // that failed, retries included
  uint64_t retries = 0;    // further attempts
  uint64_t throttled = 0;  // attempts that the server answered with "slow down" (503, 429)
  uint64_t bytes = 0;
  double wall_s = 0;
  double issue_s = 0;  // when the last request was begun
  // While the cell was fully loaded: from a tenth of the time until then, what came of requests
  // under way included.
  double steady_bytes_per_s = 0;
  double user_s = 0, sys_s = 0;  // CPU of this process
  double node_busy_s = 0;        // CPU of the whole machine, this process included
  int node_cpus = 0;
  uint64_t maxrss_kib = 0;  // of this process so far
  // Of those that succeeded, in the order they ended: from sending the attempt that succeeded to
  // its first byte; from beginning the request to its last byte, connecting and all attempts
  // included; and the end's time since the cell's start. For a put, and for a file, the first is
  // the second.
  std::vector<float> first_byte_s, total_s;
  std::vector<double> ended_s;
  std::vector<Status> failures;  // the first 10
};

struct BenchProgress {
  uint64_t requests_done = 0, bytes_done = 0;
};

// Thread safety: one thread. Blocking.
class FOREBAY_API StoreBench {
 public:
  // `uris`: objects and prefixes of one bucket or file system, which are what is read; for puts,
  // one prefix below which they go. Errors: kInvalidArgument (several buckets), kNotFound (nothing
  // to read).
  static Result<std::unique_ptr<StoreBench>> Open(const std::vector<std::string>& uris, bool put,
                                                  const StoreOptions& store,
                                                  const BenchOptions& options);
  // Deletes what was put.
  virtual ~StoreBench() = default;

  virtual const std::string& root() const = 0;  // "s3://bucket", "file://"
  // Reads of files go past the page cache; false also where the file system cannot.
  virtual bool direct() const = 0;
  virtual uint64_t objects() const = 0;
  virtual uint64_t bytes() const = 0;  // of all objects
  // Requests of that size for which the data still has places that no earlier cell has read, over
  // all shares. Puts: without limit.
  virtual uint64_t Room(uint64_t range_bytes) const = 0;
  // Reads no place twice, in this cell and all others of this object. `on_progress` (may be null):
  // every 50 ms; false stops the cell with kCancelled. Errors: kResourceExhausted (Room is less
  // than what all shares ask for), kInvalidArgument (the cell itself), or that of the first request
  // when all of the first 100 failed.
  virtual Result<BenchRun> Run(const BenchCell& cell,
                               const std::function<bool(const BenchProgress&)>& on_progress) = 0;
};

}  // namespace forebay
