// A pipeline's numbers under their names as metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/opened_source.h"
#include "engine/pipeline.h"

namespace forebay::engine {

void AddPipelineMetrics(const PipelineNumbers& numbers, std::map<std::string, double>* metrics);
// What data sets keep themselves.
void AddSourceMetrics(const std::vector<OpenedSource>& sources,
                      std::map<std::string, double>* metrics);

}  // namespace forebay::engine
