// One cell's result, as it is printed, drawn and sent between ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advice.h"
#include "forebay/bench.h"
#include "statistics.h"

namespace forebay::cli {

// All that a set of runs at the same time gave: of one process, or of all ranks.
struct CellResult {
  std::string target;  // root URI
  std::string op;      // "get", "put"
  bool direct = false;
  uint32_t ranks = 1;
  BenchCell cell;  // in_flight and requests of each rank
  BenchRun run;    // sums over the ranks; maxrss the largest; times since the common start
};

struct Summary {
  double bytes_per_s = 0;   // bytes over the wall time
  double steady_per_s = 0;  // while it was fully loaded
  double requests_per_s = 0;
  double cpu_s_per_gib = 0, user_s_per_gib = 0, sys_s_per_gib = 0;
  double node_cpu_ratio = 0;                 // of all processors of the node
  std::vector<float> first_byte_s, total_s;  // ascending
  Slowest of_7, of_64, of_512;               // by total_s
  std::vector<double> rates;                 // over time
  double decay = 1;
};
Summary Summarize(const CellResult& result);

Measured MeasuredOf(const CellResult& result, const Summary& summary);

// One JSON line, schema forebay.bench/1.
std::string ResultJson(const CellResult& result, const Summary& summary);
// The last line of a sweep.
std::string AdviceJson(const std::string& target, const std::string& op, const Advice& advice);

// For another rank to read. ParseRun refuses what it does not know.
std::string FormatRun(const BenchRun& run);
Result<BenchRun> ParseRun(const std::string& text);
// Of ranks that ran at the same time.
BenchRun AddRuns(const std::vector<BenchRun>& runs);

}  // namespace forebay::cli
