// The state by which requests are throttled: of this process alone, or of all processes of one user
// on the node, in a small piece of shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "store/pace.h"
#include "sys/shared_memory.h"

namespace forebay::store {

class NodeLimits {
 public:
  static std::shared_ptr<NodeLimits> OfProcess();
  // Shares with whoever opens the same name. Where there is no shared memory to be had, the state
  // is of this process alone. `runtime_dir`: $XDG_RUNTIME_DIR, or "".
  static std::shared_ptr<NodeLimits> OfNode(const std::string& runtime_dir,
                                            const std::string& name);
  bool shared() const { return memory_.data() != nullptr; }

  // The state for `key` (not 0): found, or taken from what nobody has used for long. Null when the
  // table is full of what is in use. Valid as long as this lives.
  PaceState* PaceFor(uint64_t key, Time now);
  BandwidthState* BandwidthFor(uint64_t key, Time now);

 private:
  struct Layout {
    std::array<PaceState, 128> paces;
    std::array<BandwidthState, 16> bandwidths;
  };
  NodeLimits() = default;

  sys::SharedMemory memory_;
  std::unique_ptr<Layout> own_;
  Layout* layout_ = nullptr;
};

}  // namespace forebay::store
