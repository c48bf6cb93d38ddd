// What a catalog that has to be read said of single entries. An entry is asked for again when its
// bytes are read, by when its block may be gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace forebay::catalog {

// Thread-safe. The oldest half goes when it is full.
template <class Entry>
class EntryCache {
 public:
  std::optional<Entry> Find(uint64_t i) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& half : halves_) {
      if (const auto it = half.find(i); it != half.end()) return it->second;
    }
    return std::nullopt;
  }
  void Keep(uint64_t i, const Entry& entry) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (halves_[0].size() >= kKept / 2) halves_[1] = std::exchange(halves_[0], {});
    halves_[0][i] = entry;
  }

 private:
  static constexpr size_t kKept = 1 << 16;

  Mutex mutex_;
  std::unordered_map<uint64_t, Entry> halves_[2] FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::catalog
