#include "store/node_limits.h"

#include <atomic>
#include <utility>

#include "base/log.h"

namespace forebay::store {
namespace {

constexpr int64_t kStaleNs = 600'000'000'000;

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

template <class State, size_t kCount>
State* Find(std::array<State, kCount>& table, uint64_t key, Time now) {
  const int64_t at = now.time_since_epoch().count();
  for (size_t i = 0; i < kCount; ++i) {
    State& state = table[(key + i) % kCount];
    uint64_t current = state.key.load(std::memory_order_relaxed);
    if (current == key) return &state;
    const bool stale =
        current != 0 && at - state.used_ns.load(std::memory_order_relaxed) > kStaleNs;
    if (current != 0 && !stale) continue;
    // What it holds is so old that it means nothing to whoever uses it next.
    if (state.key.compare_exchange_strong(current, key)) {
      state.used_ns.store(at, std::memory_order_relaxed);
      return &state;
    }
    if (current == key) return &state;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<NodeLimits> NodeLimits::OfProcess() {
  std::shared_ptr<NodeLimits> limits(new NodeLimits);
  limits->own_ = std::make_unique<Layout>();
  limits->layout_ = limits->own_.get();
  return limits;
}

std::shared_ptr<NodeLimits> NodeLimits::OfNode(const std::string& runtime_dir,
                                               const std::string& name) {
  Result<sys::SharedMemory> memory = sys::SharedMemory::Open(runtime_dir, name, sizeof(Layout));
  if (!memory.ok()) {
    Log(LogLevel::kInfo,
        "limits hold for this process alone: " + std::move(memory).status().ToString());
    return OfProcess();
  }
  std::shared_ptr<NodeLimits> limits(new NodeLimits);
  limits->memory_ = *std::move(memory);
  // Zero is the initial state, so that whoever comes first has nothing to set up.
  limits->layout_ = reinterpret_cast<Layout*>(limits->memory_.data());
  return limits;
}

PaceState* NodeLimits::PaceFor(uint64_t key, Time now) {
  return Find(layout_->paces, key == 0 ? 1 : key, now);
}

BandwidthState* NodeLimits::BandwidthFor(uint64_t key, Time now) {
  return Find(layout_->bandwidths, key == 0 ? 1 : key, now);
}

}  // namespace forebay::store
