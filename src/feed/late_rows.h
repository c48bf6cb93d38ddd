// Of a batch whose rows' sizes only decoding tells: where each row's bytes lie, until the batch is
// whole and can be laid out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"

namespace forebay::feed {

class LateRows {
 public:
  // `ragged`: how many arrays of a row differ in size.
  LateRows(uint64_t rows, size_t ragged) : ragged_(ragged), places_(rows * ragged) {}

  // Any thread, for each row the one that decodes it. The bytes live as long as what is kept.
  void Set(uint64_t row, size_t array, ByteView bytes) { places_[row * ragged_ + array] = bytes; }
  void Keep(std::shared_ptr<const void> what) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    kept_.push_back(std::move(what));
  }
  // When all rows are decoded.
  ByteView At(uint64_t row, size_t array) const { return places_[row * ragged_ + array]; }
  // Row by row, as BatchLayout takes them.
  std::vector<uint64_t> Sizes() const {
    std::vector<uint64_t> sizes;
    sizes.reserve(places_.size());
    for (const ByteView place : places_) sizes.push_back(place.size());
    return sizes;
  }

 private:
  const size_t ragged_;
  std::vector<ByteView> places_;
  Mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::feed
