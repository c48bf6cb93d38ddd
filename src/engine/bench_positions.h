// Where a benchmark reads: places of objects, each given out once. Pure.
#pragma once

#include <cstdint>
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

class BenchPositions {
 public:
  BenchPositions(const std::vector<uint64_t>& object_bytes, uint64_t seed);

  // Places of that length that are left.
  uint64_t Room(uint64_t length) const;
  // `count` of them, drawn from all, in random order; they overlap with none given out before.
  // Errors: kResourceExhausted (fewer are left; the text says how many).
  Result<std::vector<BenchPlace>> Take(uint64_t count, uint64_t length);

 private:
  struct Free {
    uint32_t object = 0;
    ByteRange range;
  };
  std::vector<Free> free_;  // by object and offset
  Random random_;
};

}  // namespace forebay::engine
