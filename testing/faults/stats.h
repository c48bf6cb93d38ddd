// Counters of the fault server and the log of its last requests.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace forebay::faults {

struct RequestRecord {
  uint64_t number = 0;
  std::string method;
  std::string target;
  std::string range;  // the Range header
  int status = 0;     // as sent; 0: nothing was sent
  bool has_latency = false;
  double drawn_ms = 0;
  double first_byte_ms = -1;  // as it happened, after the request's head; -1: never
  double total_ms = 0;
  uint64_t body_bytes = 0;  // of the response, payload as sent
  std::string outcome;      // "complete", "fault", "client_gone", "origin_failed", "timeout"
  std::vector<std::string> faults;
};

// A histogram with relative error below 0.6%.
class LatencyHistogram {
 public:
  void Add(double ms);
  uint64_t count() const { return count_; }
  double max_ms() const { return max_ms_; }
  double sum_ms() const { return sum_ms_; }
  // The value below which `fraction` of them lie; 0 when there is none.
  double Quantile(double fraction) const;

 private:
  static constexpr int kPerOctave = 64;
  static constexpr int kOctaves = 40;  // from 1 us
  std::array<uint64_t, kPerOctave * kOctaves> counts_{};
  uint64_t count_ = 0;
  double max_ms_ = 0;
  double sum_ms_ = 0;
};

// Thread-safe.
class Stats {
 public:
  explicit Stats(size_t log_limit) : log_limit_(log_limit) {}

  void Add(RequestRecord record) FB_EXCLUDES(mutex_);
  void ConnectionOpened() FB_EXCLUDES(mutex_);
  void ConnectionClosed() FB_EXCLUDES(mutex_);
  void ConnectionRefused() FB_EXCLUDES(mutex_);
  void UpstreamOpened() FB_EXCLUDES(mutex_);
  // All but the connections that are open now.
  void Reset() FB_EXCLUDES(mutex_);

  // JSON texts. The log: records numbered above `after`, oldest first, at most `limit`.
  std::string ToJson(double latency_scale) const FB_EXCLUDES(mutex_);
  std::string LogToJson(uint64_t after, size_t limit) const FB_EXCLUDES(mutex_);

 private:
  struct Counters {
    uint64_t requests = 0;
    uint64_t body_bytes = 0;
    uint64_t connections = 0;
    uint64_t connections_refused = 0;
    uint64_t upstream_connections = 0;
    std::map<std::string, uint64_t> by_method;  // bounded: unusual methods count as "other"
    std::map<int, uint64_t> by_status;
    std::map<std::string, uint64_t> by_outcome;
    std::map<std::string, uint64_t> by_fault;
    LatencyHistogram drawn;
    LatencyHistogram first_byte;
  };

  const size_t log_limit_;
  mutable Mutex mutex_;
  Counters counters_ FB_GUARDED_BY(mutex_);
  uint64_t open_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t open_peak_ FB_GUARDED_BY(mutex_) = 0;
  std::deque<RequestRecord> log_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::faults
