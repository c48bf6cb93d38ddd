// Measures shapes of requests on one or several targets, alone or with other ranks at the same
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "advice.h"
#include "command.h"
#include "forebay/bench.h"
#include "meeting.h"
#include "result.h"

namespace forebay::cli {

struct SweepOptions {
  bool put = false;
  std::vector<uint64_t> ranges;  // none given: a sweep that looks for the best itself
  std::vector<uint32_t> depths;
  uint64_t requests = 0;  // of a cell; 0: as the data and the time allow
  double seconds = 0;     // of a cell; 0: 2.5 in a sweep, no limit where requests are given
  uint64_t seed = 0;
  uint64_t buffer_bytes = 2ULL << 30;
  std::string nodes;               // where ranks meet; "": this process alone
  std::chrono::seconds wait{120};  // for the others, at the start and at each cell's ends
};

struct SweepTarget {
  std::string root;
  bool direct = false;
  uint64_t objects = 0, bytes = 0;
  std::vector<CellResult> cells;
  std::vector<Summary> summaries;
  std::vector<std::string> notes;  // cells that were left out, and why
};

class Sweep {
 public:
  Sweep(const Context& context, const SweepOptions& options)
      : context_(context), options_(options) {}

  // `uris`: those of one bucket, and those of files, are a target each. `on_cell`: after each cell.
  // Errors: kInvalidArgument, kResourceExhausted (the data is too small for what was asked for),
  // kCancelled (targets() holds what was measured until then).
  Status Run(const std::vector<std::string>& uris,
             const std::function<void(const CellResult&, const Summary&)>& on_cell);
  const std::vector<SweepTarget>& targets() const { return targets_; }
  const RankPlace& place() const { return place_; }

 private:
  struct Opened {
    std::unique_ptr<StoreBench> bench;
    size_t target;
  };
  Status Open(const std::vector<std::string>& uris);
  Status Meet();
  Status CheckRoom(const std::vector<Shape>& shapes) const;
  std::vector<Shape> Asked() const;
  uint64_t WantedFor(const Shape& shape) const;
  // `later`: what else the data has to suffice for. 0: the cell has to be left out.
  uint64_t RequestsFor(const Opened& opened, const Shape& shape,
                       std::span<const Shape> later) const;
  Status Measure(Opened& opened, const Shape& shape, std::span<const Shape> later);
  Status MeasureEach(std::span<const Shape> shapes, std::span<const Shape> later);
  Status SearchBest();
  // Goes on from the best that was measured.
  Status GoOn(Opened& opened, std::span<const Shape> later);
  // Measures the best again, in turns.
  Status Confirm(Opened& opened, std::span<const Shape> later);
  static std::vector<Measured> MeasuredSoFar(const SweepTarget& target);
  Result<BenchRun> RunTogether(StoreBench& bench, const BenchCell& cell);

  const Context& context_;
  const SweepOptions options_;
  RankPlace place_;
  std::unique_ptr<Store> meeting_store_;
  std::unique_ptr<Meeting> meeting_;
  uint64_t seed_ = 0;
  std::vector<Opened> opened_;
  std::vector<SweepTarget> targets_;
  std::function<void(const CellResult&, const Summary&)> on_cell_;
};

}  // namespace forebay::cli
