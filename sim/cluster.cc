#include "sim/cluster.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "store/s3/s3_store.h"
#include "store/stack.h"

namespace forebay::sim {

Cluster::Cluster(const ClusterOptions& options)
    : options_(options),
      world_(options.seed),
      dataset_({.samples = 512,
                .cameras = options.cameras,
                .extent_bytes = 64,
                .etag = "sim",
                .ragged = options.ragged}),
      io_(world_.NewExecutor()) {
  transport_ = std::make_unique<SimTransport>(
      io_, SimTransport::Options{.seed = DeriveKey(options.seed, HashName("network")),
                                 .latency = options.latency,
                                 .object_bytes = dataset_.object_bytes(),
                                 .byte_at = [](const std::string& path, uint64_t offset) {
                                   return PatternDataset::ByteAt(
                                       static_cast<uint32_t>(path.back() - '0'), offset);
                                 }});
  for (int i = 0; i < options.readers; ++i) {
    JobOptions job = options.job;
    job.seed = DeriveKey(options.seed, static_cast<uint64_t>(i));
    jobs_.push_back(std::make_unique<Job>(world_, dataset_, NewStore(job.seed), job));
    jobs_.back()->Start();
  }
}

std::shared_ptr<store::ObjectStore> Cluster::NewStore(uint64_t seed) {
  store::s3::S3StoreOptions options;
  options.bucket = "sim";
  options.config.credentials.access_key_id = "SIMULATED";
  options.config.credentials.secret_access_key = "simulated";
  options.config.endpoint_url = "http://127.0.0.1:1";
  options.unix_time_s = [this] {
    return std::chrono::duration_cast<std::chrono::seconds>(world_.now().time_since_epoch())
        .count();
  };
  auto s3 = store::s3::MakeS3Store(std::move(options), *transport_);
  FB_ASSERT(s3.ok());
  store::StackOptions stack;
  stack.retry.seed = seed;
  return store::MakeStack(*std::move(s3), std::move(stack));
}

void Cluster::RunSteps(uint64_t steps) {
  size_t behind = 0;
  world_.RunUntil([&] {
    while (behind < jobs_.size() && jobs_[behind]->steps() >= steps) ++behind;
    return behind == jobs_.size();
  });
}

double Cluster::MeanWait(uint64_t from, uint64_t to) const {
  double sum = 0;
  for (const auto& job : jobs_) {
    for (uint64_t i = from; i < to; ++i) sum += job->waits().at(i);
  }
  return sum / static_cast<double>(jobs_.size() * (to - from));
}

std::vector<std::string> Cluster::CloseAndCheck() {
  std::vector<std::string> violations;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i]->Close();
    for (const std::string& one : jobs_[i]->violations()) {
      violations.push_back(fmt::format("reader {}: {}", i, one));
    }
    for (const Status& error : jobs_[i]->errors()) {
      violations.push_back(fmt::format("reader {}: {}", i, error.ToString()));
    }
  }
  if (transport_->in_flight() > 0) violations.emplace_back("reads in flight after close");
  return violations;
}

HiddenWait MeasureHiddenWait(uint64_t seed, int readers) {
  constexpr uint64_t kSteady = 12;
  constexpr uint64_t kRecovery = 20;
  constexpr uint64_t kAfter = 8;
  HiddenWait measured;
  Cluster off({.seed = seed, .readers = 4, .job = {.runway_s = 0}});
  off.RunSteps(12);
  measured.off_s = off.MeanWait(1, 12);
  off.set_latency_factor(3);
  off.RunSteps(24);
  measured.off_tripled_s = off.MeanWait(13, 24);
  measured.violations = off.CloseAndCheck();

  Cluster cluster({.seed = seed, .readers = readers});
  cluster.RunSteps(kSteady);
  measured.steady_s = cluster.MeanWait(1, kSteady);
  cluster.set_latency_factor(3);
  cluster.RunSteps(kSteady + 1 + kRecovery + kAfter);
  // The fastest reader may be a step ahead of the slowest when the latency changes.
  measured.tripled_s = cluster.MeanWait(kSteady + 1 + kRecovery, kSteady + 1 + kRecovery + kAfter);
  for (std::string& one : cluster.CloseAndCheck()) measured.violations.push_back(std::move(one));
  return measured;
}

HiddenUnderFaults MeasureHiddenUnderFaults(uint64_t seed, int readers, const FaultRates& faults) {
  constexpr uint64_t kSteps = 120;    // as the main job's demo
  constexpr uint64_t kOffSteps = 72;  // each of which tells the same
  HiddenUnderFaults measured;
  Cluster off({.seed = seed, .readers = 4, .job = {.runway_s = 0}});
  off.set_faults(faults);
  off.RunSteps(kOffSteps);
  measured.off_s = off.MeanWait(1, kOffSteps);
  measured.violations = off.CloseAndCheck();

  Cluster cluster({.seed = seed, .readers = readers});
  cluster.set_faults(faults);
  cluster.RunSteps(kSteps);
  measured.on_s = cluster.MeanWait(1, kSteps);
  for (std::string& one : cluster.CloseAndCheck()) measured.violations.push_back(std::move(one));
  return measured;
}

}  // namespace forebay::sim
