// The order over everything that must not matter to it: threads, ranks, runway, latencies, decoding
// that costs nothing. All combinations, in virtual time.
#include <gtest/gtest.h>

#include <vector>

#include "order/epoch_order.h"
#include "sim/latency.h"
#include "sim/sim_job.h"
#include "store/memory/memory_store.h"

namespace forebay::sim {
namespace {

constexpr uint64_t kGlobalBatch = 24;
constexpr uint64_t kSteps = 5;  // of two an epoch: over two ends of one
constexpr uint64_t kSamples = 2 * kGlobalBatch + 12;

struct Case {
  int threads = 1;
  uint64_t world = 1;
  double runway_s = -1;
  double latency_s = 0;  // median; 0: everything is there at once
  Duration decode{};
};

// The samples of all ranks, step by step.
std::vector<int64_t> Deliver(const Case& one, uint64_t seed) {
  const PatternDataset dataset({.samples = kSamples, .cameras = 2});
  const uint64_t batch = kGlobalBatch / one.world;
  std::vector<std::vector<int64_t>> of_rank;
  for (uint64_t rank = 0; rank < one.world; ++rank) {
    World world(seed + rank);
    Random random(seed * 100 + rank);
    const Lognormal latency{.median_s = one.latency_s, .p99_s = 5 * one.latency_s};
    auto memory = store::MemoryStore::Make(
        &world.NewExecutor(), {.name = "sim", .latency = [&](const auto&) {
                                 return one.latency_s > 0 ? latency.Draw(random) : Duration{};
                               }});
    for (uint32_t camera = 0; camera < 2; ++camera) {
      std::vector<std::byte> body(dataset.object_bytes());
      for (uint64_t i = 0; i < body.size(); ++i) body[i] = PatternDataset::ByteAt(camera, i);
      memory->Insert(PatternDataset::KeyOf(camera), body);
    }
    Job job(world, dataset, memory,
            {.seed = 7,
             .batch_size = batch,
             .world_size = one.world,
             .rank = rank,
             .runway_s = one.runway_s,
             .step = std::chrono::milliseconds(50),
             .decode = one.decode,
             .decode_threads = one.threads});
    job.Start();
    EXPECT_TRUE(
        world.RunUntil([&] { return job.steps() >= kSteps; }, world.now() + std::chrono::hours(1)));
    of_rank.push_back(job.delivered());
    job.Close();
    for (const std::string& violation : job.violations()) ADD_FAILURE() << violation;
  }
  std::vector<int64_t> all;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const auto& rows : of_rank) {
      EXPECT_GE(rows.size(), (step + 1) * batch);
      if (rows.size() < (step + 1) * batch) return {};
      const auto first = rows.begin() + static_cast<std::ptrdiff_t>(step * batch);
      all.insert(all.end(), first, first + static_cast<std::ptrdiff_t>(batch));
    }
  }
  return all;
}

TEST(OrderSim, threads_ranks_runway_latency_and_decoding_do_not_matter) {
  std::vector<int64_t> expected;
  for (uint64_t epoch = 0; expected.size() < kSteps * kGlobalBatch; ++epoch) {
    order::EpochOrder order({kSamples, 7, order::GlobalShuffle{}, nullptr}, epoch);
    for (uint64_t i = 0; i < 2 * kGlobalBatch; ++i) {
      expected.push_back(static_cast<int64_t>(order.SampleAt(i)));
    }
  }
  expected.resize(kSteps * kGlobalBatch);
  uint64_t cases = 0;
  for (const int threads : {1, 2, 7}) {
    for (const uint64_t world : {1, 2, 3, 8}) {
      for (const double runway_s : {0.0, 0.05, 0.4, -1.0}) {  // none, one step, eight, found
        for (const double latency_s : {0.0, 0.13}) {
          for (const Duration decode : {Duration{}, Duration(std::chrono::milliseconds(20))}) {
            ++cases;
            ASSERT_EQ(Deliver({threads, world, runway_s, latency_s, decode}, cases), expected)
                << threads << " threads, " << world << " ranks, runway " << runway_s
                << " s, latency " << latency_s << " s";
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 192U);
}

}  // namespace
}  // namespace forebay::sim
