// A sweep as text.
#pragma once

#include <string>

#include "sweep.h"

namespace forebay::cli {

std::string SweepText(const std::vector<SweepTarget>& targets, const RankPlace& place);
// What follows from one target's cells, in sentences; "" when nothing does.
std::string AdviceText(const SweepTarget& target);
std::optional<Advice> AdviceOf(const SweepTarget& target);

}  // namespace forebay::cli
