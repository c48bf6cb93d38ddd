// A pipeline's numbers under their names as metrics.
#pragma once

#include <map>
#include <string>

#include "engine/pipeline.h"

namespace forebay::engine {

void AddPipelineMetrics(const PipelineNumbers& numbers, std::map<std::string, double>* metrics);

}  // namespace forebay::engine
