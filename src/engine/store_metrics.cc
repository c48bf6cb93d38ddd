#include "engine/store_metrics.h"

#include <fmt/core.h>

namespace forebay::engine {
namespace {

using store::LatencyHistogram;
using store::Verb;
using store::VerbCounters;
using Metrics = std::map<std::string, double>;

std::string_view OpOf(Verb verb) { return verb == Verb::kRead ? "get" : store::VerbName(verb); }

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

void AddTimes(std::string_view op, std::string_view phase, const LatencyHistogram& times,
              Metrics* metrics) {
  if (times.count() == 0) return;
  constexpr std::string_view kName = "forebay_store_request_duration_seconds";
  const std::string labels = fmt::format("op=\"{}\",phase=\"{}\"", op, phase);
  for (const double q : {0.5, 0.9, 0.99, 0.999}) {
    (*metrics)[fmt::format("{}{{{},quantile=\"{}\"}}", kName, labels, q)] =
        Seconds(times.Quantile(q));
  }
  (*metrics)[fmt::format("{}_sum{{{}}}", kName, labels)] = Seconds(times.sum());
  (*metrics)[fmt::format("{}_count{{{}}}", kName, labels)] = static_cast<double>(times.count());
}

void AddVerb(Verb verb, const VerbCounters& counters, Metrics* metrics) {
  const std::string_view op = OpOf(verb);
  for (size_t code = 0; code < store::kCodes; ++code) {
    const bool always = verb == Verb::kRead && code == 0;
    if (counters.results[code] == 0 && !always) continue;
    (*metrics)[fmt::format("forebay_store_requests_total{{op=\"{}\",code=\"{}\"}}", op,
                           CodeName(static_cast<Code>(code)))] =
        static_cast<double>(counters.results[code]);
  }
  for (size_t code = 0; code < store::kCodes; ++code) {
    if (counters.retries[code] == 0) continue;
    (*metrics)[fmt::format("forebay_store_retries_total{{reason=\"{}\"}}",
                           CodeName(static_cast<Code>(code)))] +=
        static_cast<double>(counters.retries[code]);
  }
  if (counters.bytes > 0) {
    (*metrics)[fmt::format("forebay_store_bytes_total{{op=\"{}\"}}", op)] =
        static_cast<double>(counters.bytes);
  }
  AddTimes(op, "ttfb", counters.first_byte, metrics);
  AddTimes(op, "total", counters.total, metrics);
}

}  // namespace

void AddStoreMetrics(const store::StoreCounters& counters, Metrics* metrics) {
  for (size_t verb = 0; verb < store::kVerbs; ++verb) {
    AddVerb(static_cast<Verb>(verb), counters.verbs[verb], metrics);
  }
  (*metrics)["forebay_store_requests_in_flight"] = static_cast<double>(counters.in_flight);
  const store::HedgeCounters& hedges = counters.hedges;
  const std::pair<const char*, uint64_t> outcomes[] = {
      {"won", hedges.won}, {"lost", hedges.started - hedges.won}, {"refused", hedges.refused}};
  for (const auto& [outcome, count] : outcomes) {
    (*metrics)[fmt::format("forebay_store_hedges_total{{outcome=\"{}\"}}", outcome)] =
        static_cast<double>(count);
  }
  (*metrics)["forebay_store_hedge_wasted_bytes_total"] = static_cast<double>(hedges.wasted_bytes);
}

}  // namespace forebay::engine
