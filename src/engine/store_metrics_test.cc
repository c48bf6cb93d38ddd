#include "engine/store_metrics.h"

#include <gtest/gtest.h>

namespace forebay::engine {
namespace {

using std::chrono::milliseconds;

TEST(StoreMetrics, names_each_verb_code_and_phase_that_there_was) {
  store::StoreCounters counters;
  store::VerbCounters& reads = counters.of(store::Verb::kRead);
  reads.results[static_cast<size_t>(Code::kOk)] = 98;
  reads.results[static_cast<size_t>(Code::kDataLoss)] = 2;
  reads.retries[static_cast<size_t>(Code::kUnavailable)] = 3;
  reads.bytes = 1000;
  for (int i = 0; i < 98; ++i) {
    reads.first_byte.Add(milliseconds(i < 90 ? 10 : 100));
    reads.total.Add(milliseconds(200));
  }
  counters.of(store::Verb::kHead).retries[static_cast<size_t>(Code::kUnavailable)] = 4;
  counters.hedges = {.started = 5, .won = 2, .wasted_bytes = 77, .refused = 1};
  std::map<std::string, double> m;
  AddStoreMetrics(counters, &m);
  EXPECT_EQ(m.at("forebay_store_requests_total{op=\"get\",code=\"ok\"}"), 98);
  EXPECT_EQ(m.at("forebay_store_requests_total{op=\"get\",code=\"data_loss\"}"), 2);
  EXPECT_EQ(m.at("forebay_store_retries_total{reason=\"unavailable\"}"), 7);
  EXPECT_EQ(m.at("forebay_store_bytes_total{op=\"get\"}"), 1000);
  const std::string times = "forebay_store_request_duration_seconds";
  const double median = m.at(times + "{op=\"get\",phase=\"ttfb\",quantile=\"0.5\"}");
  EXPECT_TRUE(median >= 0.010 && median <= 0.015) << median;
  const double late = m.at(times + "{op=\"get\",phase=\"ttfb\",quantile=\"0.99\"}");
  EXPECT_TRUE(late >= 0.100 && late <= 0.150) << late;
  EXPECT_EQ(m.at(times + "_count{op=\"get\",phase=\"total\"}"), 98);
  EXPECT_NEAR(m.at(times + "_sum{op=\"get\",phase=\"total\"}"), 19.6, 1e-9);
  EXPECT_EQ(m.at("forebay_store_hedges_total{outcome=\"won\"}"), 2);
  EXPECT_EQ(m.at("forebay_store_hedges_total{outcome=\"lost\"}"), 3);
  EXPECT_EQ(m.at("forebay_store_hedge_wasted_bytes_total"), 77);
  for (const auto& [name, value] : m) EXPECT_EQ(name.find("\"put\""), name.npos) << name;
}

TEST(StoreMetrics, a_store_that_did_nothing_has_the_names_that_dashboards_start_from) {
  std::map<std::string, double> m;
  AddStoreMetrics({}, &m);
  EXPECT_EQ(m.at("forebay_store_requests_total{op=\"get\",code=\"ok\"}"), 0);
  EXPECT_EQ(m.at("forebay_store_requests_in_flight"), 0);
  EXPECT_FALSE(m.contains("forebay_store_retries_total{reason=\"unavailable\"}"));
}

}  // namespace
}  // namespace forebay::engine
