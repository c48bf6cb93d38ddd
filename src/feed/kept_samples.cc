#include "feed/kept_samples.h"

namespace forebay::feed {
namespace {

constexpr uint64_t kEntryBytes = 128;  // beside the value: its places in heap and table, about

}  // namespace

KeptSamples::Value KeptSamples::Find(uint64_t sample) {
  if (used_ == 0) return nullptr;
  const MutexLock lock(mutex_);
  const auto it = values_.find(sample);
  if (it == values_.end()) return nullptr;
  ++hits_;
  return it->second;
}

void KeptSamples::Offer(uint64_t sample, const std::vector<std::byte>& value) {
  const uint64_t charged = value.size() + kEntryBytes;
  if (used_ + charged > limit_) return;
  auto copy = std::make_shared<const std::vector<std::byte>>(value);
  const MutexLock lock(mutex_);
  if (used_ + charged > limit_ || !values_.try_emplace(sample, std::move(copy)).second) return;
  used_ += charged;
}

}  // namespace forebay::feed
