// What the system lets this process have.
#pragma once

#include <cstdint>

namespace forebay::sys {

struct OpenFileLimit {
  uint64_t soft = 0, hard = 0;
};
OpenFileLimit OpenFiles();

// Of the control group (a container's), else of the machine; 0: not known.
uint64_t MemoryLimitBytes();
// Processors' worth of CPU time that the control group may use; 0: no such limit.
double CpuQuota();

}  // namespace forebay::sys
