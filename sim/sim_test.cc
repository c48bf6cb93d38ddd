// Many readers behind S3's latency, in virtual time: the waits are hidden on every seed, and soon
// again after the latency has tripled.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "sim/latency.h"
#include "sim/sim_job.h"
#include "store/memory/memory_store.h"

namespace forebay::sim {
namespace {

double Mean(const std::vector<double>& values, size_t from, size_t to) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from),
                         values.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
         static_cast<double>(to - from);
}

struct Cluster {
  Cluster(uint64_t seed, int readers, const JobOptions& options)
      : world(seed), dataset({}), random(DeriveKey(seed, HashName("latency"))) {
    SimExecutor& io = world.NewExecutor();
    store = store::MemoryStore::Make(
        &io, {.name = "sim", .latency = [this](const auto&) {
                return std::chrono::duration_cast<Duration>(latency.Draw(random) * factor);
              }});
    std::vector<std::byte> body(dataset.object_bytes());
    for (uint32_t camera = 0; camera < dataset.objects()->size(); ++camera) {
      for (uint64_t i = 0; i < body.size(); ++i) body[i] = PatternDataset::ByteAt(camera, i);
      store->Insert(PatternDataset::KeyOf(camera), body);
    }
    for (int i = 0; i < readers; ++i) {
      JobOptions one = options;
      one.seed = DeriveKey(seed, static_cast<uint64_t>(i));
      jobs.push_back(std::make_unique<Job>(world, dataset, store, one));
    }
  }
  void RunSteps(uint64_t steps) {
    world.RunUntil([&] {
      for (const auto& job : jobs) {
        if (job->steps() < steps) return false;
      }
      return true;
    });
  }

  World world;
  PatternDataset dataset;
  Random random;
  Lognormal latency;
  double factor = 1;
  std::shared_ptr<store::MemoryStore> store;
  std::vector<std::unique_ptr<Job>> jobs;
};

TEST(Sim, auto_hides_the_wait) {
  const char* wanted = std::getenv("SIM_SEED");
  const uint64_t first = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < first + 3; ++seed) {
    Cluster off(seed, 4, {.runway_s = 0});
    for (auto& job : off.jobs) job->Start();
    off.RunSteps(40);
    Cluster cluster(seed, 8, {});
    for (auto& job : cluster.jobs) job->Start();
    cluster.RunSteps(120);
    cluster.factor = 3;
    cluster.RunSteps(240);
    for (auto& job : cluster.jobs) {
      printf("seed %lu: first %.3f auto %.5f last20 %.5f after20 %.5f off %.4f  %s\n", seed,
             job->waits()[0], Mean(job->waits(), 1, 120), Mean(job->waits(), 100, 120),
             Mean(job->waits(), 142, 240), Mean(off.jobs[0]->waits(), 1, 40),
             job->planner().runway().Explain().c_str());
      for (const auto& violation : job->violations()) ADD_FAILURE() << violation;
    }
  }
}

}  // namespace
}  // namespace forebay::sim
