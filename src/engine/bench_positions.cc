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

std::vector<BenchPositions::Free> BenchPositions::Pieces(uint64_t length) const {
  if (length >= kChunkBytes) return free_;
  std::vector<Free> pieces;
  pieces.reserve(free_.size());
  for (const Free& free : free_) {
    for (uint64_t begin = free.range.offset; begin < free.range.end;) {
      const uint64_t end = std::min(free.range.end, (begin / kChunkBytes + 1) * kChunkBytes);
      pieces.push_back({free.object, {begin, end}});
      begin = end;
    }
  }
  return pieces;
}

std::vector<bool> BenchPositions::Choose(const std::vector<Free>& pieces, uint64_t count,
                                         uint64_t length) {
  std::vector<bool> chosen(pieces.size(), true);
  if (length >= kChunkBytes) return chosen;
  std::vector<size_t> whole;
  uint64_t room = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].range.size() == kChunkBytes) {
      whole.push_back(i);
      chosen[i] = false;
    } else {
      room += pieces[i].range.size() / length;
    }
  }
  size_t broken = pieces.size() - whole.size();
  while (!whole.empty() && (room < 2 * count || broken < kChunksLeast)) {
    std::swap(whole[random_.NextBelow(whole.size())], whole.back());
    chosen[whole.back()] = true;
    whole.pop_back();
    room += kChunkBytes / length;
    ++broken;
  }
  return chosen;
}

void BenchPositions::SetFree(std::vector<Free> pieces) {
  free_.clear();
  for (const Free& piece : pieces) {
    if (!free_.empty() && free_.back().object == piece.object &&
        free_.back().range.end == piece.range.offset) {
      free_.back().range.end = piece.range.end;
    } else {
      free_.push_back(piece);
    }
  }
}

uint64_t BenchPositions::Room(uint64_t length) const {
  uint64_t places = 0;
  for (const Free& piece : Pieces(length)) places += piece.range.size() / length;
  return places;
}

Result<std::vector<BenchPlace>> BenchPositions::Take(uint64_t count, uint64_t length) {
  const uint64_t all = Room(length);
  if (count > all) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} requests of {} bytes do not fit the data without reading a place "
                              "twice: {} do",
                              count, length, all));
  }
  const std::vector<Free> pieces = Pieces(length);
  const std::vector<bool> chosen = Choose(pieces, count, length);
  uint64_t room = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (chosen[i]) room += pieces[i].range.size() / length;
  }
  std::vector<BenchPlace> places;
  places.reserve(count);
  std::vector<Free> left;
  left.reserve(pieces.size() + count);
  const std::vector<uint64_t> drawn = Draw(count, room, random_);
  auto next = drawn.begin();
  uint64_t first = 0;  // number of this piece's first place
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Free& piece = pieces[i];
    const uint64_t here = chosen[i] ? piece.range.size() / length : 0;
    uint64_t begin = piece.range.offset;
    for (; next != drawn.end() && *next < first + here; ++next) {
      const uint64_t offset = piece.range.offset + (*next - first) * length;
      places.push_back({piece.object, offset});
      if (offset > begin) left.push_back({piece.object, {begin, offset}});
      begin = offset + length;
    }
    if (begin < piece.range.end) left.push_back({piece.object, {begin, piece.range.end}});
    first += here;
  }
  SetFree(std::move(left));
  for (size_t i = places.size(); i > 1; --i) {
    std::swap(places[i - 1], places[random_.NextBelow(i)]);
  }
  return places;
}

void BenchPositions::GiveBack(std::span<const BenchPlace> places, uint64_t length) {
  std::vector<Free> pieces = std::move(free_);
  for (const BenchPlace& place : places) {
    pieces.push_back({place.object, {place.offset, place.offset + length}});
  }
  std::ranges::sort(pieces, {},
                    [](const Free& free) { return std::pair(free.object, free.range.offset); });
  SetFree(std::move(pieces));
}

}  // namespace forebay::engine
