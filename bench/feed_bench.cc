// What Forebay itself costs beside the bytes and the decoding: plan + fetch + feed over a memory
// store, with a decode that does nothing. CPU time of the whole process, several numbers of parts a
// step; the line through them gives microseconds a step and microseconds a part.
//
//   feed_bench [STEPS]      target: at most 50 us a step + 5 us a part
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <vector>

#include "engine/pipeline.h"
#include "store/memory/memory_store.h"
#include "sys/event_loop.h"

namespace forebay {
namespace {

constexpr uint64_t kPartBytes = 64;
constexpr uint64_t kSamples = 4096;

class NothingDecoder : public feed::SampleDecoder {
 public:
  Status Decode(const feed::SamplePlan&, size_t, const feed::UnitBytes&, const feed::RowTargets&,
                size_t*) override {
    return {};
  }
};

// One sample is `parts` ranges of one object, decoded as one unit.
class NothingDataset : public feed::Dataset {
 public:
  explicit NothingDataset(uint64_t parts) : parts_(parts) {
    arrays_.push_back({.name = "nothing", .dtype = "uint8", .shape = {64}, .bytes = 64});
  }
  uint64_t sample_count() const override { return kSamples; }
  const std::vector<feed::SampleArray>& arrays() const override { return arrays_; }
  Result<feed::SamplePlan> PlanSample(uint64_t sample, uint64_t) const override {
    feed::SamplePlan plan;
    for (uint64_t part = 0; part < parts_; ++part) {
      const uint64_t at = (sample * parts_ + part) * kPartBytes;
      plan.extents.push_back({0, {at, at + kPartBytes}});
    }
    plan.units.push_back({0, parts_});
    return plan;
  }
  Result<std::unique_ptr<feed::SampleDecoder>> MakeDecoder() const override {
    return std::unique_ptr<feed::SampleDecoder>(std::make_unique<NothingDecoder>());
  }
  std::string DescribeSample(uint64_t) const override { return "nothing"; }
  uint64_t raw_bytes_max() const override { return parts_ * kSlabBytes; }

 private:
  uint64_t parts_;
  std::vector<feed::SampleArray> arrays_;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CPU microseconds a step.
double Measure(uint64_t parts, uint64_t steps) {
  auto io = *sys::EventLoop::Make("fb-io");
  auto store = store::MemoryStore::Make(io.get(), {.name = "bench"});
  const std::vector<std::byte> body(kSamples * parts * kPartBytes);
  store->Insert("object", body);
  auto objects = std::make_shared<const ObjectList>(
      std::vector<ObjectVersion>{{"object", body.size(), "", ""}});
  const NothingDataset dataset(parts);
  double cpu_us = 0;
  {
    auto pipeline = *engine::Pipeline::Make(
        dataset, {{0, store}}, objects,
        {.order = {.seed = 1, .sources = {{"", order::GlobalShuffle{}, {{0, kSamples}}}}},
         .memory_bytes = 256ULL << 20,
         .runway_s = 8});
    double start = 0;
    constexpr uint64_t kWarm = 500;
    for (uint64_t step = 0; step < steps + kWarm; ++step) {
      if (step == kWarm) start = CpuSeconds();
      if (!pipeline->delivery().WaitUntil(pipeline->Now())) {
        pipeline->HeadWaiting();
        pipeline->delivery().WaitUntil(kNever);
      }
      (void)pipeline->delivery().TryTake();
      pipeline->Taken(std::chrono::milliseconds(300), Duration{});
    }
    cpu_us = (CpuSeconds() - start) * 1e6 / static_cast<double>(steps);
  }
  io->Stop();
  return cpu_us;
}

int Main(uint64_t steps) {
  const std::vector<uint64_t> parts = {1, 7, 32};
  constexpr int kRuns = 7;
  std::vector<std::vector<double>> runs(parts.size());
  for (int run = 0; run < kRuns; ++run) {
    for (size_t i = 0; i < parts.size(); ++i) runs[i].push_back(Measure(parts[i], steps));
  }
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::ranges::sort(runs[i]);
    const double x = static_cast<double>(parts[i]);
    const double y = runs[i][kRuns / 2];
    fmt::print("{:3} parts a step: {:7.1f} us CPU a step ({:.1f} - {:.1f})\n", parts[i], y,
               runs[i].front(), runs[i].back());
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double per_part = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  const double per_step = (sy - per_part * sx) / n;
  fmt::print("{:.1f} us a step + {:.2f} us a part, medians of {} (target: 50 + 5)\n", per_step,
             per_part, kRuns);
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  return forebay::Main(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000);
}
