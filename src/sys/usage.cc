#include "sys/usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace forebay::sys {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ProcessUsage UsageOfProcess() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return {};
  return {.user_s = Seconds(usage.ru_utime),
          .system_s = Seconds(usage.ru_stime),
          .maxrss_kib = static_cast<uint64_t>(usage.ru_maxrss)};
}

double NodeBusySeconds() {
  std::ifstream in("/proc/stat");
  std::string name;
  if (!(in >> name) || name != "cpu") return 0;
  // user nice system idle iowait irq softirq steal; guests are within user.
  double busy = 0;
  for (size_t field = 0; field < 8; ++field) {
    double ticks = 0;
    if (!(in >> ticks)) break;
    if (field != 3 && field != 4) busy += ticks;
  }
  return busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace forebay::sys
