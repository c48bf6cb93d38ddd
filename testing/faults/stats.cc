#include "testing/faults/stats.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace forebay::faults {
namespace {

using Json = nlohmann::ordered_json;

std::string MethodLabel(const std::string& method) {
  constexpr std::array<std::string_view, 6> kUsual = {"GET",  "HEAD",   "PUT",
                                                      "POST", "DELETE", "OPTIONS"};
  const bool usual = std::find(kUsual.begin(), kUsual.end(), method) != kUsual.end();
  return usual ? method : "other";
}

double Round(double ms) { return std::round(ms * 1000) / 1000; }

Json ToJson(const LatencyHistogram& histogram) {
  const double mean =
      histogram.count() == 0 ? 0 : histogram.sum_ms() / static_cast<double>(histogram.count());
  return {{"count", histogram.count()},
          {"mean", Round(mean)},
          {"p50", Round(histogram.Quantile(0.5))},
          {"p90", Round(histogram.Quantile(0.9))},
          {"p99", Round(histogram.Quantile(0.99))},
          {"max", Round(histogram.max_ms())}};
}

Json ToJson(const RequestRecord& record) {
  Json json = {{"number", record.number},
               {"method", record.method},
               {"target", record.target},
               {"range", record.range},
               {"status", record.status}};
  json["drawn_ms"] = record.has_latency ? Json(Round(record.drawn_ms)) : Json();
  json["first_byte_ms"] = record.first_byte_ms >= 0 ? Json(Round(record.first_byte_ms)) : Json();
  json["total_ms"] = Round(record.total_ms);
  json["body_bytes"] = record.body_bytes;
  json["outcome"] = record.outcome;
  json["faults"] = record.faults;
  return json;
}

template <class Map>
Json CountsToJson(const Map& counts) {
  Json json = Json::object();
  for (const auto& [key, count] : counts) {
    if constexpr (std::is_same_v<typename Map::key_type, int>) {
      json[std::to_string(key)] = count;
    } else {
      json[key] = count;
    }
  }
  return json;
}

// Targets may hold any byte; what is no UTF-8 must not break the answer.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void LatencyHistogram::Add(double ms) {
  const double position = std::log2(std::max(ms * 1000, 1.0)) * kPerOctave;
  const auto last = static_cast<double>(counts_.size() - 1);
  ++counts_[static_cast<size_t>(std::min(position, last))];
  ++count_;
  max_ms_ = std::max(max_ms_, ms);
  sum_ms_ += ms;
}

double LatencyHistogram::Quantile(double fraction) const {
  if (count_ == 0) return 0;
  const double wanted = fraction * static_cast<double>(count_);
  double seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += static_cast<double>(counts_[i]);
    if (counts_[i] == 0 || seen < wanted) continue;
    const double middle = std::exp2((static_cast<double>(i) + 0.5) / kPerOctave) / 1000;
    return std::min(middle, max_ms_);
  }
  return max_ms_;
}

void Stats::Add(RequestRecord record) {
  const MutexLock lock(mutex_);
  ++counters_.requests;
  counters_.body_bytes += record.body_bytes;
  ++counters_.by_method[MethodLabel(record.method)];
  ++counters_.by_status[record.status];
  ++counters_.by_outcome[record.outcome];
  for (const auto& fault : record.faults) ++counters_.by_fault[fault];
  if (record.has_latency) counters_.drawn.Add(record.drawn_ms);
  if (record.first_byte_ms >= 0) counters_.first_byte.Add(record.first_byte_ms);
  if (log_limit_ == 0) return;
  if (log_.size() == log_limit_) log_.pop_front();
  log_.push_back(std::move(record));
}

void Stats::ConnectionOpened() {
  const MutexLock lock(mutex_);
  ++counters_.connections;
  open_peak_ = std::max(open_peak_, ++open_);
}
void Stats::ConnectionClosed() {
  const MutexLock lock(mutex_);
  --open_;
}
void Stats::ConnectionRefused() {
  const MutexLock lock(mutex_);
  ++counters_.connections_refused;
}
void Stats::UpstreamOpened() {
  const MutexLock lock(mutex_);
  ++counters_.upstream_connections;
}

void Stats::Reset() {
  const MutexLock lock(mutex_);
  counters_ = {};
  log_.clear();
  open_peak_ = open_;
}

std::string Stats::ToJson(double latency_scale) const {
  const MutexLock lock(mutex_);
  Json json = {{"schema", "forebay.faults.stats/1"},
               {"requests", counters_.requests},
               {"body_bytes", counters_.body_bytes}};
  json["methods"] = CountsToJson(counters_.by_method);
  json["statuses"] = CountsToJson(counters_.by_status);
  json["outcomes"] = CountsToJson(counters_.by_outcome);
  json["faults"] = CountsToJson(counters_.by_fault);
  json["latency_scale"] = latency_scale;
  json["drawn_ms"] = faults::ToJson(counters_.drawn);
  json["first_byte_ms"] = faults::ToJson(counters_.first_byte);
  json["connections"] = {{"accepted", counters_.connections},
                         {"refused", counters_.connections_refused},
                         {"open", open_},
                         {"open_peak", open_peak_},
                         {"upstream_opened", counters_.upstream_connections}};
  return Dump(json);
}

std::string Stats::LogToJson(uint64_t after, size_t limit) const {
  const MutexLock lock(mutex_);
  Json requests = Json::array();
  for (const auto& record : log_) {
    if (requests.size() == limit) break;
    if (record.number > after) requests.push_back(faults::ToJson(record));
  }
  return Dump({{"schema", "forebay.faults.log/1"}, {"requests", std::move(requests)}});
}

}  // namespace forebay::faults
