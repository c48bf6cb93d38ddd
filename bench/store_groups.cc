// Reads of one shape through `forebay bench store`'s own way, and what each took: for
// store_advice.py, which groups them.
//
//   store_groups ENDPOINT URI RANGE_BYTES IN_FLIGHT REQUESTS RUNS
//
// A line for each read: the run's number, when it began and how long it took, in seconds. The
// connections of one run serve the next.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "forebay/bench.h"

namespace forebay {
namespace {

[[noreturn]] void Die(const Status& status) {
  fmt::print(stderr, "store_groups: {}\n", status.ToString());
  std::exit(1);
}

int Main(char** arguments) {
  StoreOptions store;
  store.endpoint_url = arguments[0];
  auto bench = StoreBench::Open({arguments[1]}, false, store, {});
  if (!bench.ok()) Die(bench.status());
  const BenchCell cell{.range_bytes = std::strtoull(arguments[2], nullptr, 10),
                       .in_flight = static_cast<uint32_t>(std::atoi(arguments[3])),
                       .requests = std::strtoull(arguments[4], nullptr, 10)};
  const int runs = std::atoi(arguments[5]);
  for (int number = 0; number < runs; ++number) {
    const auto run = (*bench)->Run(cell, nullptr);
    if (!run.ok()) Die(run.status());
    if (run->errors > 0) Die(run->failures.front());
    for (size_t i = 0; i < run->total_s.size(); ++i) {
      const double took = run->total_s[i];
      fmt::print("{} {:.6f} {:.6f}\n", number, run->ended_s[i] - took, took);
    }
  }
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  if (argc == 7) return forebay::Main(argv + 1);
  fmt::print(stderr, "usage: store_groups ENDPOINT URI RANGE_BYTES IN_FLIGHT REQUESTS RUNS\n");
  return 2;
}
