// The feeder with its planner, fetcher and tiers, in virtual time.
#include "feed/feeder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/latency.h"
#include "sim/sim_job.h"
#include "store/hedge_store.h"
#include "store/memory/memory_store.h"
#include "testing/hook_store.h"

namespace forebay::sim {
namespace {

using store::Priority;
using store::ReadRequest;

class FeederTest : public ::testing::Test {
 protected:
  void Make(const PatternDataset::Options& data, const JobOptions& options, uint64_t seed = 1) {
    job.reset();
    dataset = std::make_unique<PatternDataset>(data);
    world = std::make_unique<World>(seed);
    SimExecutor& io = world->NewExecutor();
    random = Random(seed);
    memory = store::MemoryStore::Make(
        &io, {.name = "sim", .latency = [this](const auto&) { return Latency(); }});
    for (uint32_t camera = 0; camera < data.cameras; ++camera) {
      std::vector<std::byte> body(dataset->object_bytes());
      for (uint64_t i = 0; i < body.size(); ++i) body[i] = PatternDataset::ByteAt(camera, i);
      memory->Insert(PatternDataset::KeyOf(camera), body);
    }
    auto hooked = std::make_shared<testing::HookStore>(
        memory, [this](const ReadRequest& r) { return on_read ? on_read(r) : std::nullopt; });
    hedges = std::make_shared<store::HedgeCounters>();
    auto hedged = std::make_shared<store::HedgeStore>(hooked, store::HedgeOptions{}, hedges);
    job = std::make_unique<Job>(*world, *dataset, hedged, options);
  }
  Duration Latency() {
    return hold > Duration{} ? std::exchange(hold, Duration{}) : latency.Draw(random);
  }
  void RunSteps(uint64_t steps) {
    ASSERT_TRUE(world->RunUntil([&] { return job->steps() >= steps; },
                                world->now() + std::chrono::hours(10)));
  }
  void ExpectSound() const {
    for (const std::string& violation : job->violations()) ADD_FAILURE() << violation;
  }

 public:
  std::unique_ptr<PatternDataset> dataset;
  std::unique_ptr<World> world;
  Random random{1};
  Lognormal latency;
  Duration hold{};  // of the next read alone
  testing::HookStore::OnRead on_read;
  std::shared_ptr<store::MemoryStore> memory;
  std::shared_ptr<store::HedgeCounters> hedges;
  std::unique_ptr<Job> job;
};

TEST_F(FeederTest, delivers_every_sample_once_an_epoch_at_any_batch_size_and_runway) {
  for (const uint64_t batch : {1u, 3u, 8u}) {
    for (const double runway : {0.0, 0.7, -1.0}) {
      Make({.samples = 24, .cameras = 3}, {.batch_size = batch, .runway_s = runway});
      job->Start();
      RunSteps(2 * 24 / batch);
      const auto& delivered = job->delivered();
      for (size_t epoch = 0; epoch < 2; ++epoch) {
        const std::set<int64_t> once(
            delivered.begin() + static_cast<std::ptrdiff_t>(24 * epoch),
            delivered.begin() + static_cast<std::ptrdiff_t>(24 * (epoch + 1)));
        EXPECT_EQ(once.size(), 24u);
      }
      job->Close();
      ExpectSound();
    }
  }
}

TEST_F(FeederTest, samples_of_many_sizes_come_whole_and_in_order) {
  for (const uint64_t batch : {1u, 3u, 8u}) {
    for (const double runway : {0.0, 0.7, -1.0}) {
      for (const bool one_unit : {false, true}) {
        Make({.samples = 24, .cameras = 3, .one_unit = one_unit, .ragged = true},
             {.batch_size = batch, .runway_s = runway});
        job->Start();
        RunSteps(2 * 24 / batch);
        const auto& delivered = job->delivered();
        for (size_t epoch = 0; epoch < 2; ++epoch) {
          const auto first = delivered.begin() + static_cast<std::ptrdiff_t>(24 * epoch);
          EXPECT_EQ(std::set<int64_t>(first, first + 24).size(), 24u);
        }
        job->Close();
        ExpectSound();
      }
    }
  }
}

// The largest batch and one sample's raw bytes are what a loader asks for.
TEST_F(FeederTest, samples_of_many_sizes_fit_the_least_budget) {
  const PatternDataset::Options data{
      .samples = 64, .cameras = 2, .extent_bytes = 100'000, .ragged = true};
  const PatternDataset same(data);
  const uint64_t least = SlabsFor(same.OutputBytesMax(4)) * kSlabBytes + same.raw_bytes_max();
  Make(data, {.batch_size = 4, .memory_bytes = least});
  job->Start();
  RunSteps(40);
  EXPECT_LE(job->feeder().budget().peak(), least);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_substitute_of_another_size_has_its_place_in_the_batch) {
  uint64_t other_sizes = 0;
  for (uint64_t bad = 0; bad < 20; ++bad) {
    for (const bool one_unit : {false, true}) {
      Make({.samples = 20, .cameras = 2, .one_unit = one_unit, .ragged = true},
           {.batch_size = 4, .epochs = 1, .skip_max = 3});
      if (dataset->ExtentBytes(bad) == 0) continue;  // nothing is read of it
      on_read = [&](const ReadRequest& request) -> std::optional<Status> {
        // The first substitute may be bad too.
        const bool fails = request.range.offset == dataset->OffsetOf(bad) ||
                           request.range.offset == dataset->OffsetOf((bad + 3) % 20);
        return fails ? std::optional(Status(Code::kDataLoss, "damaged")) : std::nullopt;
      };
      job->Start();
      RunSteps(5);
      EXPECT_TRUE(job->errors().empty());
      EXPECT_GE(job->feeder().stats().substitutes, 1u);
      const auto& delivered = job->delivered();
      ASSERT_EQ(delivered.size(), 20u);
      EXPECT_EQ(std::ranges::count(delivered, static_cast<int64_t>(bad)), 0);
      for (const int64_t sample : delivered) {
        other_sizes +=
            std::ranges::count(delivered, sample) > 1 &&
            dataset->ExtentBytes(static_cast<uint64_t>(sample)) != dataset->ExtentBytes(bad);
      }
      job->Close();  // nothing stays reserved
      ExpectSound();
    }
  }
  EXPECT_GT(other_sizes, 10u) << "or nothing was asked";
}

TEST_F(FeederTest, ends_after_the_last_epoch) {
  Make({.samples = 10, .cameras = 2}, {.epochs = 2});
  job->Start();
  EXPECT_FALSE(
      world->RunUntil([&] { return job->steps() > 20; }, world->now() + std::chrono::minutes(5)));
  EXPECT_EQ(job->steps(), 20u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, goes_on_with_a_budget_of_one_batch) {
  // 4 rows x 7 cameras: the output takes one slab, each part one.
  Make({.samples = 64, .cameras = 7}, {.batch_size = 4, .memory_bytes = 8 * kSlabBytes});
  job->Start();
  RunSteps(40);
  EXPECT_EQ(job->feeder().budget().peak(), 8 * kSlabBytes);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, off_fetches_nothing_before_the_consumer_comes) {
  Make({}, {.runway_s = 0});
  job->Start();
  RunSteps(1);
  EXPECT_EQ(job->fetcher().stats().gets, 7u);
  world->RunUntil([] { return false; }, world->now() + std::chrono::milliseconds(200));
  EXPECT_EQ(job->fetcher().stats().gets, 7u) << "it computes now";
  RunSteps(3);
  EXPECT_EQ(job->fetcher().stats().gets, 21u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_dead_prefetcher_slows_training_but_never_stops_it) {
  on_read = [](const ReadRequest& request) -> std::optional<Status> {
    if (request.options.priority == Priority::kDemand) return std::nullopt;
    return Status(Code::kUnavailable, "the prefetcher was killed");
  };
  Make({}, {});
  job->Start();
  RunSteps(60);
  EXPECT_TRUE(job->errors().empty());
  EXPECT_GT(job->feeder().stats().demand_retries, 50u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest,
       what_was_not_there_when_it_was_prefetched_is_looked_for_again_before_it_is_told) {
  Make({.samples = 20, .cameras = 2}, {.epochs = 1});
  bool prefetched = false;
  on_read = [&](const ReadRequest& request) -> std::optional<Status> {
    if (request.range.offset != 512 * 7) return std::nullopt;
    if (request.options.priority == Priority::kDemand) return std::nullopt;  // it is back
    prefetched = true;
    return Status(Code::kNotFound, "gone", {.uri = "memory://sim/" + request.key});
  };
  job->Start();
  RunSteps(20);
  EXPECT_TRUE(prefetched);
  EXPECT_TRUE(job->errors().empty());
  EXPECT_EQ(job->delivered().size(), 20u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_bad_sample_is_one_named_error_and_the_rest_goes_on) {
  Make({.samples = 20, .cameras = 2}, {.epochs = 1});
  on_read = [](const ReadRequest& request) -> std::optional<Status> {
    if (request.range.offset != 512 * 7) return std::nullopt;
    return Status(Code::kNotFound, "gone", {.uri = "memory://sim/" + request.key});
  };
  job->Start();
  RunSteps(20);
  ASSERT_EQ(job->errors().size(), 1u);
  EXPECT_EQ(job->errors()[0].code(), Code::kNotFound);
  EXPECT_NE(job->errors()[0].ToString().find("sample 7 (pattern 7): "), std::string::npos);
  EXPECT_EQ(job->delivered().size(), 19u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_bad_sample_is_replaced_by_the_same_other_one_each_time) {
  std::vector<std::vector<int64_t>> runs;
  for (const double runway : {0.0, -1.0}) {
    Make({.samples = 20, .cameras = 2}, {.runway_s = runway, .epochs = 1, .skip_max = 1});
    on_read = [](const ReadRequest& request) -> std::optional<Status> {
      if (request.range.offset != 512 * 7) return std::nullopt;
      return Status(Code::kDataLoss, "damaged");
    };
    job->Start();
    RunSteps(20);
    EXPECT_TRUE(job->errors().empty());
    EXPECT_EQ(job->feeder().stats().substitutes, 1u);
    runs.push_back(job->delivered());
    job->Close();
    ExpectSound();
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_F(FeederTest, a_bad_sample_counts_once_however_often_it_is_met) {
  Make({.samples = 20, .cameras = 2}, {.epochs = 4, .skip_max = 1});
  on_read = [](const ReadRequest& request) -> std::optional<Status> {
    if (request.range.offset != 512 * 7) return std::nullopt;
    return Status(Code::kDataLoss, "damaged");
  };
  job->Start();
  RunSteps(80);
  EXPECT_TRUE(job->errors().empty());
  EXPECT_GE(job->feeder().stats().substitutes, 4u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_read_that_never_answers_costs_no_wait) {
  Make({}, {});
  job->Start();
  RunSteps(30);
  const uint64_t before = hedges->won;
  const uint64_t hedged = job->fetcher().stats().hedged;
  hold = std::chrono::hours(1);
  RunSteps(60);
  EXPECT_GE(hedges->won, before + 1);
  EXPECT_EQ(job->fetcher().stats().hedged - hedged, hedges->won - before);
  const double slowest = *std::max_element(job->waits().begin() + 30, job->waits().end());
  EXPECT_LT(slowest, 0.1);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, an_epoch_that_fits_in_memory_is_fetched_once) {
  Make({.samples = 12, .cameras = 2}, {.memory_tier_bytes = 24 * kSlabBytes});
  job->Start();
  RunSteps(12 + 12);
  const uint64_t first = job->fetcher().stats().gets;
  RunSteps(12 * 4);
  // The end of the first epoch may still be in work when the second asks for the same.
  EXPECT_LE(first, 24u + 8u);
  EXPECT_EQ(job->fetcher().stats().gets, first);
  EXPECT_GT(job->fetcher().stats().bytes_from_memory, 0u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, memory_too_small_for_an_epoch_keeps_what_comes_next) {
  Make({.samples = 100, .cameras = 2}, {.memory_tier_bytes = 40 * kSlabBytes});
  job->Start();
  RunSteps(100);
  const uint64_t before = job->fetcher().stats().gets;
  RunSteps(300);
  // 20 of 100 samples fit: nearly so many GETs are saved, where an LRU would save almost none.
  EXPECT_LT(job->fetcher().stats().gets - before, 2 * 200 * 85 / 100);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, restarts_at_any_moment_go_on_from_the_new_place_alone) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Make({.samples = 40, .cameras = 3}, {.seed = seed, .batch_size = 2}, seed);
    job->Start();
    Random moments(seed);
    for (int i = 0; i < 5; ++i) {
      const uint64_t tasks = world->tasks_run() + moments.NextBelow(300);
      world->RunUntil([&] { return world->tasks_run() >= tasks; });
      job->Restart(moments.NextBelow(3), 2 * moments.NextBelow(20));
    }
    RunSteps(job->steps() + 30);
    job->Close();
    ExpectSound();
  }
}

TEST_F(FeederTest, neighbours_are_fetched_once_for_all_samples_that_need_them) {
  for (const bool ragged : {false, true}) {
    for (const double runway : {0.0, 0.7, -1.0}) {
      Make({.samples = 64, .cameras = 3, .ragged = ragged, .chunk = 8},
           {.batch_size = 4, .runway_s = runway, .memory_tier_bytes = 64ULL << 20});
      job->Start();
      RunSteps(2 * 16);
      const auto& delivered = job->delivered();
      for (size_t epoch = 0; epoch < 2; ++epoch) {
        const auto first = delivered.begin() + static_cast<std::ptrdiff_t>(64 * epoch);
        EXPECT_EQ(std::set<int64_t>(first, first + 64).size(), 64u);
      }
      EXPECT_EQ(job->fetcher().stats().gets, 8u * 3u);
      job->Close();
      ExpectSound();
    }
  }
}

// What is not kept has to be fetched again, and everything stays right.
TEST_F(FeederTest, neighbours_fit_the_least_budget_that_holds_a_batch_and_one_piece) {
  const PatternDataset::Options data{
      .samples = 64, .cameras = 2, .extent_bytes = 30'000, .ragged = true, .chunk = 8};
  const PatternDataset same(data);
  const uint64_t least = SlabsFor(same.OutputBytesMax(4)) * kSlabBytes + same.raw_bytes_max();
  Make(data, {.batch_size = 4, .memory_bytes = least});
  job->Start();
  RunSteps(40);
  EXPECT_LE(job->feeder().budget().peak(), least);
  EXPECT_EQ(std::set<int64_t>(job->delivered().begin(), job->delivered().begin() + 64).size(), 64u);
  job->Close();
  ExpectSound();
}

TEST_F(FeederTest, a_bad_sample_among_neighbours_is_replaced_alone) {
  for (const bool ragged : {false, true}) {
    Make({.samples = 40, .cameras = 2, .ragged = ragged, .chunk = 8, .undecodable = {3, 5, 17}},
         {.batch_size = 8, .epochs = 2, .skip_max = 3});
    job->Start();
    RunSteps(10);
    EXPECT_TRUE(job->errors().empty());
    const auto& delivered = job->delivered();
    ASSERT_EQ(delivered.size(), 80u);
    for (const int64_t bad : {3, 5, 17}) EXPECT_EQ(std::ranges::count(delivered, bad), 0);
    // Its own place alone: all others come, in every epoch.
    EXPECT_EQ(std::set<int64_t>(delivered.begin(), delivered.begin() + 40).size(), 37u);
    job->Close();
    ExpectSound();
  }
  Make({.samples = 40, .cameras = 2, .chunk = 8, .undecodable = {3}}, {.batch_size = 8});
  job->Start();
  RunSteps(5);
  ASSERT_EQ(job->errors().size(), 1u);
  EXPECT_NE(job->errors()[0].ToString().find("sample 3 (pattern 3): "), std::string::npos);
  job->Close();
}

TEST_F(FeederTest, pieces_that_fail_now_and_then_come_to_all_that_wait_for_them) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const uint64_t kept = seed % 3 == 0 ? 0 : seed % 3 * (256ULL << 10);
    Make({.samples = 48, .cameras = 2, .ragged = seed % 2 == 0, .chunk = 6},
         {.seed = seed, .batch_size = 4, .memory_tier_bytes = kept}, seed);
    on_read = [&](const ReadRequest& request) -> std::optional<Status> {
      if (request.options.priority == Priority::kDemand || random.NextBelow(4) > 0) {
        return std::nullopt;
      }
      return Status(Code::kUnavailable, "now and then");
    };
    job->Start();
    RunSteps(24);
    EXPECT_TRUE(job->errors().empty());
    const auto& delivered = job->delivered();
    EXPECT_EQ(std::set<int64_t>(delivered.begin(), delivered.begin() + 48).size(), 48u);
    job->Close();
    EXPECT_EQ(memory->operations_in_flight(), 0u);
    ExpectSound();
  }
}

TEST_F(FeederTest, neighbours_and_restarts_at_any_moment) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Make({.samples = 40, .cameras = 3, .chunk = 4},
         {.seed = seed, .batch_size = 2, .memory_tier_bytes = (seed % 2) << 20}, seed);
    on_read = [&](const ReadRequest&) -> std::optional<Status> {
      if (random.NextBelow(10) > 0) return std::nullopt;
      return Status(Code::kUnavailable, "now and then");
    };
    job->Start();
    Random moments(seed);
    for (int i = 0; i < 5; ++i) {
      const uint64_t tasks = world->tasks_run() + moments.NextBelow(300);
      world->RunUntil([&] { return world->tasks_run() >= tasks; });
      job->Restart(moments.NextBelow(3), 2 * moments.NextBelow(20));
    }
    RunSteps(job->steps() + 20);
    job->Close();
    EXPECT_EQ(memory->operations_in_flight(), 0u);
    ExpectSound();
  }
}

TEST_F(FeederTest, closing_at_any_moment_leaves_nothing_behind) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const bool ragged = seed % 2 == 0;
    Make({.samples = 40, .cameras = 3, .ragged = ragged, .chunk = seed % 3 == 0 ? 4U : 0U},
         {.seed = seed, .batch_size = 2, .skip_max = ragged ? 40 : 0}, seed);
    on_read = [&](const ReadRequest&) -> std::optional<Status> {
      if (random.NextBelow(20) > 0) return std::nullopt;
      return Status(ragged ? Code::kDataLoss : Code::kUnavailable, "now and then");
    };
    job->Start();
    const uint64_t tasks = DeriveKey(seed, 1) % 500;
    world->RunUntil([&] { return world->tasks_run() >= tasks; });
    job->Close();
    EXPECT_EQ(memory->operations_in_flight(), 0u);
    ExpectSound();
  }
}

}  // namespace
}  // namespace forebay::sim
