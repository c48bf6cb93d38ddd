#include "engine/pipeline_metrics.h"

namespace forebay::engine {

void AddPipelineMetrics(const PipelineNumbers& numbers, std::map<std::string, double>* metrics) {
  std::map<std::string, double>& m = *metrics;
  const auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
  const feed::FeedStats& feed = numbers.feed;
  const fetch::FetchStats& fetch = numbers.fetch;
  const auto count = [](uint64_t n) { return static_cast<double>(n); };
  m["forebay_samples_total"] = count(feed.samples);
  m["forebay_batches_total"] = count(feed.groups);
  m["forebay_stall_seconds_total"] = seconds(feed.stall);
  m["forebay_stall_seconds_total{cause=\"cold_start\"}"] = seconds(feed.stall_first);
  m["forebay_stall_seconds_total{where=\"fetch\"}"] = seconds(feed.stall_fetch);
  m["forebay_stall_seconds_total{where=\"prepare\"}"] = seconds(feed.stall - feed.stall_fetch);
  m["forebay_step_duration_seconds"] = numbers.step_s;
  m["forebay_runway_seconds"] = numbers.runway_s;
  m["forebay_runway_batches"] = numbers.runway_batches;
  m["forebay_stage_busy_ratio{stage=\"decode\"}"] = numbers.decode_busy_ratio;
  m["forebay_decode_busy_seconds_total"] = seconds(feed.decode_busy);
  m["forebay_store_read_bytes_total"] = count(fetch.bytes_fetched);
  m["forebay_used_bytes_total"] = count(feed.bytes_used);
  m["forebay_cache_read_bytes_total{tier=\"memory\"}"] = count(fetch.bytes_from_memory);
  m["forebay_prefetch_parts_total{outcome=\"useful\"}"] = count(feed.parts_useful);
  m["forebay_prefetch_parts_total{outcome=\"late\"}"] = count(feed.parts_late);
  m["forebay_prefetch_parts_total{outcome=\"wasted\"}"] = count(feed.parts_wasted);
  m["forebay_prefetch_parts_total{outcome=\"failed\"}"] = count(feed.parts_failed);
  m["forebay_demand_retries_total"] = count(feed.demand_retries);
  m["forebay_samples_replaced_total"] = count(feed.substitutes);
  m["forebay_memory_bytes{kind=\"reserved\"}"] = count(numbers.budget_used);
  m["forebay_memory_bytes{kind=\"reserved_peak\"}"] = count(numbers.budget_peak);
  m["forebay_memory_bytes{kind=\"slabs\"}"] = count(numbers.slab_bytes);
  m["forebay_memory_bytes{kind=\"outputs\"}"] = count(numbers.output_bytes);
  m["forebay_memory_bytes{kind=\"memory_tier\"}"] = count(numbers.memory_tier_bytes);
}

void AddSourceMetrics(const std::vector<OpenedSource>& sources,
                      std::map<std::string, double>* metrics) {
  double& prepared = (*metrics)["forebay_memory_bytes{kind=\"prepared\"}"];
  double& decoded = (*metrics)["forebay_memory_bytes{kind=\"decoded\"}"];
  double& hits = (*metrics)["forebay_prepared_samples_total"];
  for (const OpenedSource& source : sources) {
    if (source.tables != nullptr) decoded += static_cast<double>(source.tables->kept_bytes());
    if (source.records == nullptr) continue;
    prepared += static_cast<double>(source.records->kept().used_bytes());
    hits += static_cast<double>(source.records->kept().hits());
  }
}

}  // namespace forebay::engine
