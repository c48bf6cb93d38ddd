#include "result.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "output.h"

namespace forebay::cli {
namespace {

constexpr double kGiB = 1073741824.0;
constexpr double kRateBucketS = 0.1;
constexpr size_t kRateBucketsMin = 6, kRateBucketsMax = 60;
constexpr char kRunMagic[] = "forebay-bench-run 2";

std::vector<float> Sorted(std::vector<float> values) {
  std::ranges::sort(values);
  return values;
}

std::string Number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

std::string Quantiles(const std::vector<float>& sorted) {
  const auto ms = [&](double q) { return Number(Quantile(sorted, q) * 1e3); };
  return fmt::format("{{\"mean\":{},\"p50\":{},\"p90\":{},\"p99\":{},\"p999\":{},\"max\":{}}}",
                     Number(Mean(sorted) * 1e3), ms(0.5), ms(0.9), ms(0.99), ms(0.999), ms(1));
}

std::string SlowestJson(const Slowest& slowest) {
  return fmt::format("{{\"mean\":{},\"median\":{},\"low\":{},\"high\":{},\"enough\":{}}}",
                     Number(slowest.mean * 1e3), Number(slowest.median * 1e3),
                     Number(slowest.low * 1e3), Number(slowest.high * 1e3), slowest.enough);
}

template <class T>
void Write(std::string& out, const char* name, const std::vector<T>& values) {
  out += fmt::format("{} {}", name, values.size());
  for (const T value : values) out += fmt::format(" {:.9g}", value);
  out += '\n';
}

template <class T>
bool ReadList(std::istream& in, const std::string& name, std::vector<T>* values) {
  std::string word;
  size_t count = 0;
  if (!(in >> word >> count) || word != name || count > (1U << 26)) return false;
  values->resize(count);
  for (T& value : *values) {
    if (!(in >> value)) return false;
  }
  return true;
}

// How long each request took, in the order in which they began.
std::vector<float> InOrder(const BenchRun& run) {
  std::vector<std::pair<double, float>> requests;
  requests.reserve(run.total_s.size());
  for (size_t i = 0; i < std::min(run.total_s.size(), run.ended_s.size()); ++i) {
    requests.emplace_back(run.ended_s[i] - run.total_s[i], run.total_s[i]);
  }
  std::ranges::sort(requests);
  std::vector<float> times;
  times.reserve(requests.size());
  for (const auto& [began, took] : requests) times.push_back(took);
  return times;
}

}  // namespace

Summary Summarize(const CellResult& result) {
  const BenchRun& run = result.run;
  const auto each = static_cast<double>(result.cell.range_bytes);
  const double wall = std::max(run.wall_s, 1e-9);
  Summary summary;
  summary.bytes_per_s = static_cast<double>(run.bytes) / wall;
  summary.steady_per_s = run.steady_bytes_per_s;
  summary.requests_per_s = static_cast<double>(run.requests) / wall;
  const double gib = static_cast<double>(run.bytes) / kGiB;
  if (gib > 0) {
    summary.user_s_per_gib = run.user_s / gib;
    summary.sys_s_per_gib = run.sys_s / gib;
    summary.cpu_s_per_gib = summary.user_s_per_gib + summary.sys_s_per_gib;
  }
  summary.node_cpu_ratio = run.node_busy_s / wall / std::max(1, run.node_cpus);
  summary.first_byte_s = Sorted(run.first_byte_s);
  summary.total_s = Sorted(run.total_s);
  const std::vector<float> in_order = InOrder(run);
  summary.of_7 = SlowestOf(in_order, 7);
  summary.of_64 = SlowestOf(in_order, 64);
  summary.of_512 = SlowestOf(in_order, 512);
  const auto buckets = std::clamp(static_cast<size_t>(std::min(wall, 1e6) / kRateBucketS),
                                  kRateBucketsMin, kRateBucketsMax);
  summary.rates = RateOverTime(run.ended_s, each, wall, buckets);
  summary.decay = Decay(summary.rates);
  return summary;
}

Measured MeasuredOf(const CellResult& result, const Summary& summary) {
  return {.range_bytes = result.cell.range_bytes,
          .in_flight = result.cell.in_flight,
          .bytes_per_s = summary.steady_per_s,
          .cpu_s_per_gib = summary.cpu_s_per_gib,
          .slowest_of_64_s = summary.of_64.median,
          .slowest_of_512_s = summary.of_512.median};
}

std::string ResultJson(const CellResult& result, const Summary& summary) {
  const BenchRun& run = result.run;
  std::string rates;
  for (const double rate : summary.rates) rates += (rates.empty() ? "" : ",") + Number(rate / 1e9);
  return JsonLine("bench")
      .Add("kind", "cell")
      .Add("target", result.target)
      .Add("op", result.op)
      .Add("direct", result.direct)
      .Add("range_bytes", result.cell.range_bytes)
      .Add("inflight", uint64_t{result.cell.in_flight})
      .Add("ranks", uint64_t{result.ranks})
      .Add("bytes", run.bytes)
      .Add("requests", run.requests)
      .Add("errors", run.errors)
      .Add("retries", run.retries)
      .Add("throttled", run.throttled)
      .Add("wall_s", run.wall_s)
      .Add("user_s", run.user_s)
      .Add("sys_s", run.sys_s)
      .Add("maxrss_kib", run.maxrss_kib)
      .AddRaw("gb_per_s", Number(summary.bytes_per_s / 1e9))
      .AddRaw("steady_gb_per_s", Number(summary.steady_per_s / 1e9))
      .AddRaw("requests_per_s", Number(summary.requests_per_s))
      .AddRaw("ttfb_ms", Quantiles(summary.first_byte_s))
      .AddRaw("total_ms", Quantiles(summary.total_s))
      .AddRaw("slowest_of_ms",
              fmt::format("{{\"7\":{},\"64\":{},\"512\":{}}}", SlowestJson(summary.of_7),
                          SlowestJson(summary.of_64), SlowestJson(summary.of_512)))
      .AddRaw("cpu_s_per_gib",
              fmt::format("{{\"user\":{},\"sys\":{}}}", Number(summary.user_s_per_gib),
                          Number(summary.sys_s_per_gib)))
      .AddRaw("node_cpu_ratio", Number(summary.node_cpu_ratio))
      .AddRaw("gb_per_s_over_time", "[" + rates + "]")
      .AddRaw("decay", Number(summary.decay))
      .Take();
}

std::string AdviceJson(const std::string& target, const std::string& op, const Advice& advice) {
  return JsonLine("bench")
      .Add("kind", "advice")
      .Add("target", target)
      .Add("op", op)
      .Add("range_bytes", advice.recommended.range_bytes)
      .Add("inflight", uint64_t{advice.recommended.in_flight})
      .AddRaw("runway_s", Number(advice.runway_s))
      .AddRaw("gb_per_s", Number(advice.recommended.bytes_per_s / 1e9))
      .AddRaw("best_gb_per_s", Number(advice.best.bytes_per_s / 1e9))
      .Take();
}

std::string FormatRun(const BenchRun& run) {
  std::string out =
      fmt::format("{}\n{} {} {} {} {}\n{:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {} {}\n",
                  kRunMagic, run.requests, run.errors, run.retries, run.throttled, run.bytes,
                  run.wall_s, run.issue_s, run.steady_bytes_per_s, run.user_s, run.sys_s,
                  run.node_busy_s, run.node_cpus, run.maxrss_kib);
  Write(out, "first_byte_s", run.first_byte_s);
  Write(out, "total_s", run.total_s);
  Write(out, "ended_s", run.ended_s);
  return out + "end\n";
}

Result<BenchRun> ParseRun(const std::string& text) {
  const Status bad(Code::kDataLoss, "not the result of a rank of this version");
  std::istringstream in(text);
  std::string magic, end;
  if (!std::getline(in, magic) || magic != kRunMagic) return bad;
  BenchRun run;
  in >> run.requests >> run.errors >> run.retries >> run.throttled >> run.bytes;
  in >> run.wall_s >> run.issue_s >> run.steady_bytes_per_s >> run.user_s >> run.sys_s >>
      run.node_busy_s;
  in >> run.node_cpus >> run.maxrss_kib;
  if (!in || !ReadList(in, "first_byte_s", &run.first_byte_s) ||
      !ReadList(in, "total_s", &run.total_s) || !ReadList(in, "ended_s", &run.ended_s) ||
      !(in >> end) || end != "end") {
    return bad;
  }
  return run;
}

BenchRun AddRuns(const std::vector<BenchRun>& runs) {
  BenchRun sum;
  for (const BenchRun& run : runs) {
    sum.requests += run.requests;
    sum.errors += run.errors;
    sum.retries += run.retries;
    sum.throttled += run.throttled;
    sum.bytes += run.bytes;
    sum.user_s += run.user_s;
    sum.sys_s += run.sys_s;
    // Ranks may share a node, so these are of the busiest.
    sum.node_busy_s = std::max(sum.node_busy_s, run.node_busy_s);
    sum.node_cpus = std::max(sum.node_cpus, run.node_cpus);
    sum.wall_s = std::max(sum.wall_s, run.wall_s);
    sum.issue_s = std::max(sum.issue_s, run.issue_s);
    sum.steady_bytes_per_s += run.steady_bytes_per_s;
    sum.maxrss_kib = std::max(sum.maxrss_kib, run.maxrss_kib);
    sum.first_byte_s.insert(sum.first_byte_s.end(), run.first_byte_s.begin(),
                            run.first_byte_s.end());
    sum.total_s.insert(sum.total_s.end(), run.total_s.begin(), run.total_s.end());
    sum.ended_s.insert(sum.ended_s.end(), run.ended_s.begin(), run.ended_s.end());
    sum.failures.insert(sum.failures.end(), run.failures.begin(), run.failures.end());
  }
  return sum;
}

}  // namespace forebay::cli
