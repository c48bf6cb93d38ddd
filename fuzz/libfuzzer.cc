// One program for all targets: $FOREBAY_FUZZ_TARGET says which.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace {

const forebay::fuzz::Target& Chosen() {
  const char* name = std::getenv("FOREBAY_FUZZ_TARGET");
  const auto* target = forebay::fuzz::FindTarget(name == nullptr ? "" : name);
  if (target == nullptr) {
    std::fprintf(stderr, "FOREBAY_FUZZ_TARGET must be one of:");
    for (const auto& each : forebay::fuzz::Targets()) {
      std::fprintf(stderr, " %.*s", static_cast<int>(each.name.size()), each.name.data());
    }
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return *target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const forebay::fuzz::Target& target = Chosen();
  target.run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
