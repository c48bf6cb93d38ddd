// Where each array of a batch, and each row in it, lies in the batch's one output block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "feed/dataset.h"

namespace forebay::feed {

// Immutable.
class BatchLayout {
 public:
  // Of arrays whose rows are all equal.
  BatchLayout(const std::vector<SampleArray>& arrays, uint64_t rows)
      : BatchLayout(arrays, rows, {}) {}
  // `ragged_bytes`: row by row, the bytes of each ragged array.
  BatchLayout(const std::vector<SampleArray>& arrays, uint64_t rows,
              std::span<const uint64_t> ragged_bytes) {
    size_t ragged = 0;
    for (const SampleArray& array : arrays) ragged += array.ragged() ? 1 : 0;
    FB_ASSERT(ragged_bytes.size() == ragged * rows);
    size_t number = 0;  // among the ragged ones
    for (const SampleArray& array : arrays) {
      Place place{.first = bytes_, .row_bytes = array.bytes, .offsets = {}};
      uint64_t total = array.bytes * rows;
      if (array.ragged()) {
        total = 0;
        place.offsets.reserve(rows + 1);
        place.offsets.push_back(0);
        for (uint64_t row = 0; row < rows; ++row) {
          total += ragged_bytes[row * ragged + number];
          place.offsets.push_back(static_cast<int64_t>(total));
        }
        ++number;
      }
      place.total = total;
      bytes_ += (total + kAlign - 1) / kAlign * kAlign;
      places_.push_back(std::move(place));
    }
  }
  static constexpr uint64_t kAlign = 64;  // a cache line, and what torch and DLPack expect

  uint64_t bytes() const { return bytes_; }  // of the block
  size_t arrays() const { return places_.size(); }
  // Where array `i` begins in the block, and how much of it there is.
  uint64_t FirstOf(size_t i) const { return places_[i].first; }
  uint64_t BytesOf(size_t i) const { return places_[i].total; }
  // Of a ragged array: where each row begins in it, and its end.
  const std::vector<int64_t>& OffsetsOf(size_t i) const { return places_[i].offsets; }
  MutableBytes RowOf(std::byte* block, size_t i, uint64_t row) const {
    const Place& place = places_[i];
    if (place.offsets.empty()) {
      return {block + place.first + row * place.row_bytes, static_cast<size_t>(place.row_bytes)};
    }
    const auto from = static_cast<uint64_t>(place.offsets[row]);
    return {block + place.first + from,
            static_cast<size_t>(static_cast<uint64_t>(place.offsets[row + 1]) - from)};
  }

 private:
  struct Place {
    uint64_t first = 0;
    uint64_t row_bytes = 0;  // where all are equal
    uint64_t total = 0;
    std::vector<int64_t> offsets;  // of a ragged array
  };
  std::vector<Place> places_;
  uint64_t bytes_ = 0;
};

}  // namespace forebay::feed
