// A sweep as one self-contained HTML page.
#pragma once

#include <string>

#include "sweep.h"

namespace forebay::cli {

std::string SweepPage(const std::vector<SweepTarget>& targets, const RankPlace& place,
                      const std::string& op, const std::string& when);

}  // namespace forebay::cli
