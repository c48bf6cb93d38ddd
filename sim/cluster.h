// Many readers of one bucket in virtual time: each a Job with a store of its own (S3 client, limit
// and retries, as a process has them) over one simulated network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/latency.h"
#include "sim/sim_job.h"
#include "sim/sim_transport.h"
#include "store/object_store.h"

namespace forebay::sim {

struct ClusterOptions {
  uint64_t seed = 1;
  int readers = 64;
  uint32_t cameras = 7;
  bool ragged = false;  // samples of many sizes
  Lognormal latency;
  JobOptions job;  // its seed is derived
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options);

  // Until every reader has taken `steps` batches.
  void RunSteps(uint64_t steps);
  // From now on every latency is `factor` times as long.
  void set_latency_factor(double factor) { transport_->set_latency_factor(factor); }
  void set_faults(const FaultRates& rates) { transport_->set_faults(rates); }
  // Mean seconds a step waited over all readers, steps [from, to).
  double MeanWait(uint64_t from, uint64_t to) const;
  std::vector<std::string> CloseAndCheck();
  const std::vector<std::unique_ptr<Job>>& jobs() const { return jobs_; }

 private:
  std::shared_ptr<store::ObjectStore> NewStore(uint64_t seed);

  ClusterOptions options_;
  World world_;
  PatternDataset dataset_;
  SimExecutor& io_;
  std::unique_ptr<SimTransport> transport_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// The question that a run ahead of the GPU has to answer, on one seed.
struct HiddenWait {
  double off_s = 0;      // mean wait a step without prefetch
  double steady_s = 0;   // with auto, behind the first batch
  double tripled_s = 0;  // with auto, from 20 steps behind the tripling of all latencies
  double off_tripled_s = 0;
  std::vector<std::string> violations;
  double HiddenShare() const { return 1 - steady_s / off_s; }
  double HiddenShareTripled() const { return 1 - tripled_s / off_tripled_s; }
};
HiddenWait MeasureHiddenWait(uint64_t seed, int readers);

// The same question on a network with faults from the first request on.
struct HiddenUnderFaults {
  double off_s = 0;
  double on_s = 0;  // with auto, behind the first batch
  std::vector<std::string> violations;
  double HiddenShare() const { return 1 - on_s / off_s; }
};
HiddenUnderFaults MeasureHiddenUnderFaults(uint64_t seed, int readers, const FaultRates& faults);

}  // namespace forebay::sim
