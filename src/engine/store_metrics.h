// What a store has counted, by the names that Loader::Metrics gives.
#pragma once

#include <map>
#include <string>

#include "store/meter_store.h"

namespace forebay::engine {

// Adds forebay_store_requests_total{op,code}, forebay_store_bytes_total{op},
// forebay_store_request_duration_seconds{op,phase,quantile} and its _sum and _count (phases "ttfb"
// and "total", of requests that succeeded), forebay_store_retries_total{reason},
// forebay_store_hedges_total{outcome}, forebay_store_hedge_wasted_bytes_total and
// forebay_store_requests_in_flight. Verbs that were never used and codes that never came are left
// out, but for op "get", code "ok".
void AddStoreMetrics(const store::StoreCounters& counters, std::map<std::string, double>* metrics);

}  // namespace forebay::engine
