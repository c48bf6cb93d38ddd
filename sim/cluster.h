// Many readers of one store in virtual time, each a Job of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/latency.h"
#include "sim/sim_job.h"
#include "store/memory/memory_store.h"

namespace forebay::sim {

struct ClusterOptions {
  uint64_t seed = 1;
  int readers = 64;
  uint32_t cameras = 7;
  Lognormal latency;
  JobOptions job;  // its seed is derived
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options);

  // Until every reader has taken `steps` batches.
  void RunSteps(uint64_t steps);
  // From now on every latency is `factor` times as long.
  void set_latency_factor(double factor) { factor_ = factor; }
  // Mean seconds a step waited over all readers, steps [from, to).
  double MeanWait(uint64_t from, uint64_t to) const;
  std::vector<std::string> CloseAndCheck();
  const std::vector<std::unique_ptr<Job>>& jobs() const { return jobs_; }

 private:
  ClusterOptions options_;
  World world_;
  PatternDataset dataset_;
  Random random_;
  double factor_ = 1;
  std::shared_ptr<store::MemoryStore> store_;
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

}  // namespace forebay::sim
