#include "engine/bench_positions.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace forebay::engine {
namespace {

// `count` different numbers below `limit`, ascending (Floyd's algorithm).
std::vector<uint64_t> Draw(uint64_t count, uint64_t limit, Random& random) {
  std::unordered_set<uint64_t> drawn;
  drawn.reserve(count);
  for (uint64_t top = limit - count; top < limit; ++top) {
    const uint64_t one = random.NextBelow(top + 1);
    drawn.insert(drawn.contains(one) ? top : one);
  }
  std::vector<uint64_t> numbers(drawn.begin(), drawn.end());
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace

BenchPositions::BenchPositions(const std::vector<uint64_t>& object_bytes, uint64_t seed)
    : random_(seed) {
  for (size_t i = 0; i < object_bytes.size(); ++i) {
    if (object_bytes[i] > 0) free_.push_back({static_cast<uint32_t>(i), {0, object_bytes[i]}});
  }
}

uint64_t BenchPositions::Room(uint64_t length) const {
  uint64_t places = 0;
  for (const Free& free : free_) places += free.range.size() / length;
  return places;
}

Result<std::vector<BenchPlace>> BenchPositions::Take(uint64_t count, uint64_t length) {
  const uint64_t room = Room(length);
  if (count > room) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} requests of {} bytes do not fit the data without reading a place "
                              "twice: {} do",
                              count, length, room));
  }
  std::vector<BenchPlace> places;
  places.reserve(count);
  std::vector<Free> left;
  left.reserve(free_.size() + count);
  const std::vector<uint64_t> drawn = Draw(count, room, random_);
  auto next = drawn.begin();
  uint64_t first = 0;  // number of this extent's first place
  for (const Free& free : free_) {
    const uint64_t here = free.range.size() / length;
    uint64_t begin = free.range.offset;
    for (; next != drawn.end() && *next < first + here; ++next) {
      const uint64_t offset = free.range.offset + (*next - first) * length;
      places.push_back({free.object, offset});
      if (offset > begin) left.push_back({free.object, {begin, offset}});
      begin = offset + length;
    }
    if (begin < free.range.end) left.push_back({free.object, {begin, free.range.end}});
    first += here;
  }
  free_ = std::move(left);
  for (size_t i = places.size(); i > 1; --i) {
    std::swap(places[i - 1], places[random_.NextBelow(i)]);
  }
  return places;
}

}  // namespace forebay::engine
