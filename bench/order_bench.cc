// What a position of an order costs: one core, no data, at sizes from a thousand to 10^12 samples.
//
//   order_bench [ROUNDS]
//
// Targets: 40 ns an index at 10^12; a sampler that starts in the middle of 10^10 samples has its
// first range within a millisecond. Positions are asked for one after the other, as a run does, and
// far apart, as a search does.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "feed/sampler.h"
#include "order/run_order.h"

namespace forebay {
namespace {

// CPU time of this thread: other programs do not count.
double Now() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

order::RunSpec SpecOf(uint64_t samples, const order::Shuffle& shuffle) {
  order::SourceSize size{0, samples, nullptr};
  size.blocks =
      std::make_shared<const order::BlockTable>(order::BlockTable::Uniform(samples, 1000));
  return {.seed = 7, .sources = {{"", shuffle, {size}}}};
}

order::RunSpec MixOf(uint64_t samples) {
  order::RunSpec spec = SpecOf(samples, order::GlobalShuffle{});
  spec.sources[0].name = "a";
  spec.sources.push_back(spec.sources[0]);
  spec.sources[1].name = "b";
  spec.mixture = {{0, {7, 3}}};
  return spec;
}

// Nanoseconds a position: in a row, and with a stride that jumps about.
void Measure(const char* name, uint64_t samples, const order::RunSpec& spec, int rounds) {
  constexpr uint64_t kCount = 1'000'000;
  auto order = order::RunOrder::Make(spec);
  if (!order.ok()) std::exit(1);
  const uint64_t epoch = order->EpochSamples(0);
  std::vector<double> in_a_row;
  std::vector<double> far_apart;
  uint64_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    double start = Now();
    const uint64_t first = epoch / 3;
    for (uint64_t i = 0; i < kCount; ++i) sum += order->At(0, (first + i) % epoch).sample;
    in_a_row.push_back((Now() - start) / kCount * 1e9);
    start = Now();
    constexpr uint64_t kFew = kCount / 100;
    uint64_t at = 0;
    for (uint64_t i = 0; i < kFew; ++i) {
      at = (at + epoch / 3 * 2 + 12345) % epoch;
      sum += order->At(0, at).sample;
    }
    far_apart.push_back((Now() - start) / kFew * 1e9);
  }
  fmt::print("{:>14} samples  {:<28} {:6.1f} ns in a row, {:7.1f} ns far apart ({:x})\n", samples,
             name, Median(in_a_row), Median(far_apart), sum & 0xff);
}

// Records of one size, as computed: no catalog to read.
class Records : public feed::Dataset {
 public:
  explicit Records(uint64_t samples) : samples_(samples), arrays_{{"x", "uint8", {1000}, 1000}} {}
  uint64_t sample_count() const override { return samples_; }
  const std::vector<feed::SampleArray>& arrays() const override { return arrays_; }
  Result<feed::SamplePlan> PlanSample(uint64_t sample, uint64_t) const override {
    return feed::SamplePlan{.extents = {{0, {sample * 1000, sample * 1000 + 1000}}},
                            .units = {{0, 1}}};
  }
  Result<std::unique_ptr<feed::SampleDecoder>> MakeDecoder() const override {
    return Status(Code::kUnimplemented, "nothing is decoded here");
  }
  std::string DescribeSample(uint64_t) const override { return ""; }
  uint64_t raw_bytes_max() const override { return 1000; }

 private:
  uint64_t samples_;
  std::vector<feed::SampleArray> arrays_;
};

// From a state's position to the first range.
void MeasureResume(const order::RunSpec& spec, const char* name, int rounds) {
  constexpr uint64_t kSamples = 10'000'000'000;
  const Records records(kSamples);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double start = Now();
    auto order = order::RunOrder::Make(spec);
    feed::Sampler sampler(records, *std::move(order), {});
    sampler.Seek(3, 1'000'000'000);
    auto item = sampler.Next();
    if (!item.ok() || !*item || (**item).extents.empty()) std::exit(1);
    times.push_back((Now() - start) * 1e6);
  }
  fmt::print(
      "resume at 10^9 of 10^10, {}: {:.1f} us to the first range (median of {}), target "
      "1000\n",
      name, Median(times), rounds);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  using namespace forebay;  // NOLINT(google-build-using-namespace)
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  for (const uint64_t samples :
       {uint64_t{1000}, uint64_t{1'000'000}, uint64_t{1'000'000'000'000}}) {
    Measure("in order", samples, SpecOf(samples, order::Sequential{}), rounds);
    Measure("global shuffle", samples, SpecOf(samples, order::GlobalShuffle{}), rounds);
    Measure("blocks of 1000, 16 x 8 open", samples, SpecOf(samples, order::BlockShuffle{16, 8, 64}),
            rounds);
    if (samples < uint64_t{1} << 39)
      Measure("two sources, 7 to 3", samples, MixOf(samples), rounds);
  }
  MeasureResume(SpecOf(10'000'000'000, order::GlobalShuffle{}), "global shuffle", rounds);
  MeasureResume(SpecOf(10'000'000'000, order::BlockShuffle{16, 8, 64}), "blocks", rounds);
  return 0;
}
