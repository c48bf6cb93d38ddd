#include "sys/usage.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <sstream>
#include <string>

#include "sys/fd.h"

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
  // Opened once: whoever asks a second time may have no descriptor left.
  static const Fd file(::open("/proc/stat", O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size() - 1, 0);
  if (size <= 0) return 0;
  std::istringstream in(text.data());
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
