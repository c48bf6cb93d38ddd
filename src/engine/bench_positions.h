// Where a benchmark reads: places of objects, each given out once. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "forebay/status.h"

namespace forebay::engine {

struct BenchPlace {
  uint32_t object = 0;
  uint64_t offset = 0;
  friend bool operator==(const BenchPlace&, const BenchPlace&) = default;
};

// Reads smaller than a chunk break as few chunks as keep them spread, so that larger ones, which
// may come later, find some that are whole.
class BenchPositions {
 public:
  static constexpr uint64_t kChunkBytes = 32ULL << 20;  // aligned in its object
  static constexpr size_t kChunksLeast = 64;            // that places are spread over

  BenchPositions(const std::vector<uint64_t>& object_bytes, uint64_t seed);

  // Places of that length that are left.
  uint64_t Room(uint64_t length) const;
  // `count` of them, in random order; they overlap with none given out before. Errors:
  // kResourceExhausted (fewer are left; the text says how many).
  Result<std::vector<BenchPlace>> Take(uint64_t count, uint64_t length);
  // Places of that length which were taken and not read.
  void GiveBack(std::span<const BenchPlace> places, uint64_t length);

 private:
  struct Free {
    uint32_t object = 0;
    ByteRange range;
  };
  // What is free, no piece longer than a chunk where `length` is not.
  std::vector<Free> Pieces(uint64_t length) const;
  // Which of those pieces to draw from.
  std::vector<bool> Choose(const std::vector<Free>& pieces, uint64_t count, uint64_t length);
  void SetFree(std::vector<Free> pieces);

  std::vector<Free> free_;  // by object and offset; none ends where the next begins
  Random random_;
};

}  // namespace forebay::engine
