// How deep to prefetch. The runway is the least depth at which the consumer waits for about
// nothing, found from what was measured: the recent GET latencies (as a lognormal fit and as they
// were), decode times and step times are replayed through a model of the pipeline at each depth.
//
// Model, for group g at depth d: it is asked for when group g - d is taken, its bytes are there
// F_g later, decoding is in order and takes D_g, and the consumer takes a group every S seconds:
//   ready(g) = max(take(g - d) + F_g, ready(g - 1)) + D_g
//   take(g)  = max(take(g - 1) + S, ready(g))
// Pure: no clock of its own, one owner thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/executor.h"

namespace forebay::plan {

struct RunwayOptions {
  double fixed_s = -1;  // >= 0: this runway, converted to groups by the measured step time
  int depth_max = 64;   // groups; the ring's capacity
  int decode_threads = 1;
};

class Runway {
 public:
  explicit Runway(const RunwayOptions& options);

  // Groups that may be in work or ready beyond the one the consumer took last. 0: off.
  int depth() const { return depth_; }
  double step_s() const;
  double runway_s() const { return depth_ * step_s(); }
  // Why this depth, in one line with its numbers.
  std::string Explain() const;

  // One part, from asked for to complete; `again`: one GET was not enough (retried, hedged).
  void OnPart(Duration total, bool again = false);
  // All bytes of one group are there: `parts` GETs, in `fetch` since it was asked for.
  void OnGroupFetched(Duration fetch, int parts);
  // One group was decoded: the sum of its decode times.
  void OnGroupDecoded(Duration decode);
  // The consumer came back: it computed for `step` and then waited for `wait`.
  void OnStep(Duration step, Duration wait);

 private:
  struct Series {  // the last kWindow values
    void Add(double value);
    double Mean() const;
    void KeepLast(size_t n);
    size_t capacity = 0;
    std::vector<double> values = {};
  };
  struct LatencyFit {
    double mu = 0;  // of ln(seconds), raised by its standard error
    double sigma = 0;
    bool valid = false;
  };
  LatencyFit Fit() const;
  bool LatencyShifted() const;
  void Decide();
  void DecideFromMeasured();
  double MeanWait(const std::vector<double>& fetch_s, int depth) const;
  int LeastDepth(const std::vector<double>& fetch_s, double* wait_below) const;
  void SpreadSlowest();
  std::vector<double> FittedFetches() const;
  double OffWait(const std::vector<double>& fetch_s) const;

  RunwayOptions options_;
  int depth_;
  int bonus_ = 0;  // depth added because the model was too hopeful
  int clean_steps_ = 0;
  double recent_wait_s_ = 0;  // exponential mean
  double again_share_ = 0;    // of the recent parts
  int parts_per_group_ = 1;
  int slowest_of_ = 0;
  std::vector<double> slowest_z_;  // quantiles of the slowest of so many standard normals
  double wait_one_less_s_ = 0;     // what one group less would wait, for Explain
  Series part_log_s_{512};
  Series fetch_s_{64};
  Series decode_s_{64};
  Series step_s_{32};
  uint64_t steps_ = 0;
  double since_decided_s_ = 0;
};

}  // namespace forebay::plan
