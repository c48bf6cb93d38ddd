// What has been used so far, of CPU and memory.
#pragma once

#include <cstdint>

namespace forebay::sys {

struct ProcessUsage {
  double user_s = 0, system_s = 0;
  uint64_t maxrss_kib = 0;
};
ProcessUsage UsageOfProcess();

// CPU time of all processes of the machine (of the container's view of it) that was not idle; 0
// where the system does not tell.
double NodeBusySeconds();

}  // namespace forebay::sys
