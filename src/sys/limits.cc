#include "sys/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace forebay::sys {
namespace {

uint64_t FirstNumber(const char* path) {
  std::ifstream in(path);
  uint64_t value = 0;
  return in >> value ? value : 0;
}

}  // namespace

OpenFileLimit OpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return {.soft = limit.rlim_cur, .hard = limit.rlim_max};
}

uint64_t MemoryLimitBytes() {
  const auto machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const uint64_t group = FirstNumber(path);
    if (group > 0) return std::min(group, machine);
  }
  return machine;
}

double CpuQuota() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");  // "max 100000" or "150000 100000"
  double quota = 0, period = 0;
  return in >> quota >> period && period > 0 ? quota / period : 0;
}

}  // namespace forebay::sys
