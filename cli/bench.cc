// forebay bench store URI... [--op get|put] [--range 8MiB] [--inflight 32] [--requests N]
#include <fmt/core.h>

#include <ctime>
#include <fstream>

#include "command.h"
#include "numbers.h"
#include "output.h"
#include "page.h"
#include "signals.h"
#include "size.h"
#include "sweep.h"
#include "table.h"

namespace forebay::cli {
namespace {

class Bench : public Command {
 public:
  std::string name() const override { return "bench"; }
  std::string summary() const override {
    return "measure a store: bandwidth, latencies, what they cost, what to set";
  }
  void Define(Flags& flags) override {
    flags.Argument("what", &what_, "store");
    flags.Arguments("uri", &uris_,
                    "objects and prefixes to read; with --op put: below which to put");
    flags.Choice("--op", &op_, {"get", "put"}, "what is measured (default: get)");
    flags.Option("--range", &ranges_, "bytes a request, or several: 1MiB,8MiB (default: a sweep)");
    flags.Option("--inflight", &depths_, "requests at a time, or several: 8,32 (default: a sweep)");
    flags.Option("--requests", &requests_, "of each cell (default: as data and time allow)");
    flags.Option("--seconds", &seconds_, "of each cell (default: 2.5 unless --requests is given)");
    flags.Size("--memory", &memory_, "of buffers (default: 2GiB)");
    flags.Option("--seed", &seed_, "of the places read (default: others in each run)");
    flags.Option("--report", &report_, "an HTML page with the distributions, into this file");
    flags.Option("--nodes", &nodes_,
                 "a shared folder or prefix where all ranks of a launcher meet and add up");
    flags.Option("--wait", &wait_, "with --nodes: seconds for a rank that is late (default: 120)");
  }

  int Run(const Context& context) override {
    SweepOptions options{.put = op_ == "put",
                         .requests = static_cast<uint64_t>(requests_),
                         .seconds = seconds_,
                         .seed = static_cast<uint64_t>(seed_),
                         .buffer_bytes = memory_,
                         .nodes = nodes_,
                         .wait = std::chrono::seconds(wait_)};
    if (const std::string wrong = Check(&options); !wrong.empty()) return context.FailUsage(wrong);
    if (options.put && uris_.size() > 1) return context.FailUsage("--op put takes one URI");
    const KeepPartialWork keep;  // what was put is deleted, what was measured is shown
    Sweep sweep(context, options);
    const Status status = sweep.Run(uris_, [&](const CellResult& cell, const Summary& summary) {
      for (const Status& failure : cell.run.failures) context.Note(failure.ToString());
      if (context.globals.json && sweep.place().rank == 0) WriteOut(ResultJson(cell, summary));
      errors_ += cell.run.errors;
      ++cells_;
    });
    const int shown = cells_ > 0 && sweep.place().rank == 0 ? Show(context, sweep) : kExitOk;
    if (status.code() == Code::kResourceExhausted && status.detail().http_status == 0) {
      return context.FailUsage(status.message());
    }
    if (!status.ok()) return context.Fail(status);
    if (cells_ == 0) {
      for (const SweepTarget& target : sweep.targets()) {
        for (const std::string& note : target.notes) {
          WriteErr(fmt::format("forebay bench: {}: left out: {}\n", target.root, note));
        }
      }
      return context.FailUsage("nothing was measured");
    }
    if (shown != kExitOk) return shown;
    return errors_ > 0 ? kExitFailed : kExitOk;
  }

 private:
  // What is wrong with the arguments; "" nothing.
  std::string Check(SweepOptions* options) const {
    if (what_ != "store") return fmt::format("\"{}\" cannot be measured; store can", what_);
    if (requests_ < 0 || seconds_ < 0 || seed_ < 0 || wait_ < 0) return "a number is negative";
    if (wait_ > 86'400) return "--wait is more than a day";
    for (const std::string_view text : Parts(ranges_)) {
      const auto size = ParseSize(std::string(text));
      if (!size || *size == 0 || *size > (1ULL << 40)) {
        return fmt::format("--range \"{}\" is no list like 1MiB,8MiB", ranges_);
      }
      options->ranges.push_back(*size);
    }
    for (const std::string_view text : Parts(depths_)) {
      const auto depth = ParseNumber(text);
      if (!depth || *depth < 1 || *depth > kDepthMax) {
        return fmt::format("--inflight \"{}\" is no list like 8,32", depths_);
      }
      options->depths.push_back(static_cast<uint32_t>(*depth));
    }
    return "";
  }

  int Show(const Context& context, const Sweep& sweep) const {
    int code = kExitOk;
    if (!report_.empty()) {
      std::ofstream file(report_, std::ios::binary);
      file << SweepPage(sweep.targets(), sweep.place(), op_, IsoTime(std::time(nullptr)));
      file.close();
      if (!file) {
        WriteErr(fmt::format("forebay bench: {} cannot be written\n", report_));
        code = kExitOther;
      }
    }
    if (!context.globals.json) {
      return WriteOut(SweepText(sweep.targets(), sweep.place())) ? code : kExitOther;
    }
    for (const SweepTarget& target : sweep.targets()) {
      for (const std::string& note : target.notes) context.Note("left out: " + note);
      const auto advice = AdviceOf(target);
      // Of one cell nothing follows: its line stays the only one.
      if (advice && target.cells.size() > 1) WriteOut(AdviceJson(target.root, op_, *advice));
    }
    return code;
  }

  // Of a list that may be left out.
  static std::vector<std::string_view> Parts(const std::string& list) {
    return list.empty() ? std::vector<std::string_view>() : Split(list, ',');
  }

  static constexpr int64_t kDepthMax = 4096;
  std::string what_, op_ = "get", ranges_, depths_, report_, nodes_;
  std::vector<std::string> uris_;
  int64_t requests_ = 0, seed_ = 0, wait_ = 120;
  double seconds_ = 0;
  uint64_t memory_ = 2ULL << 30;
  uint64_t errors_ = 0, cells_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeBench() { return std::make_unique<Bench>(); }

}  // namespace forebay::cli
