#include "engine/bench_positions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace forebay::engine {
namespace {

struct Taken {
  uint32_t object;
  uint64_t begin, end;
  auto operator<=>(const Taken&) const = default;
};

TEST(BenchPositions, no_byte_is_given_out_twice_whatever_the_lengths) {
  const std::vector<uint64_t> sizes = {1'000'000, 4095, 0, 333'333, 65'536};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    BenchPositions positions(sizes, seed);
    std::vector<Taken> taken;
    for (const auto& [count, length] : {std::pair<uint64_t, uint64_t>{3, 100'000},
                                        {50, 4096},
                                        {1, 333'333 / 2},
                                        {200, 512},
                                        {40, 4096}}) {
      if (count > positions.Room(length)) continue;
      const auto places = positions.Take(count, length);
      ASSERT_TRUE(places.ok());
      ASSERT_EQ(places->size(), count);
      for (const BenchPlace& place : *places) {
        ASSERT_LE(place.offset + length, sizes[place.object]);
        taken.push_back({place.object, place.offset, place.offset + length});
      }
    }
    ASSERT_GE(taken.size(), 200u);
    std::ranges::sort(taken);
    for (size_t i = 1; i < taken.size(); ++i) {
      if (taken[i].object != taken[i - 1].object) continue;
      ASSERT_GE(taken[i].begin, taken[i - 1].end) << "seed " << seed;
    }
  }
}

TEST(BenchPositions, all_of_the_data_can_be_taken_and_no_more) {
  BenchPositions positions({40'960, 8192, 4095}, 1);
  EXPECT_EQ(positions.Room(4096), 12u);
  EXPECT_EQ(positions.Room(8192), 6u);
  EXPECT_EQ(positions.Room(65'536), 0u);
  ASSERT_TRUE(positions.Take(11, 4096).ok());
  const auto refused = positions.Take(2, 4096);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("1 do"), std::string::npos)
      << refused.status().message();
  EXPECT_TRUE(positions.Take(1, 4096).ok());
  EXPECT_EQ(positions.Room(4096), 0u);
}

TEST(BenchPositions, the_places_are_spread_over_everything_and_differ_between_seeds) {
  const std::vector<uint64_t> sizes(100, 1 << 20);
  BenchPositions one(sizes, 1), same(sizes, 1), other(sizes, 2);
  const auto places = *one.Take(200, 4096);
  EXPECT_EQ(places, *same.Take(200, 4096));
  EXPECT_NE(places, *other.Take(200, 4096));
  std::vector<int> objects(100), quarters(4);
  int ascending = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    ++objects[places[i].object];
    ++quarters[places[i].offset / (1 << 18)];
    ascending += i > 0 && places[i].object > places[i - 1].object ? 1 : 0;
  }
  EXPECT_LT(std::ranges::max(objects), 12);
  EXPECT_GT(std::ranges::min(quarters), 25);
  EXPECT_LT(ascending, 140);
}

TEST(BenchPositions, small_reads_leave_whole_chunks_to_large_ones_and_are_spread_all_the_same) {
  constexpr uint64_t kChunks = 512;
  BenchPositions positions({kChunks * BenchPositions::kChunkBytes}, 7);
  std::vector<int> of_chunk(kChunks);
  for (int cell = 0; cell < 3; ++cell) {
    const auto places = positions.Take(8192, 65'536);
    ASSERT_TRUE(places.ok());
    for (const BenchPlace& place : *places) {
      ++of_chunk[place.offset / BenchPositions::kChunkBytes];
    }
  }
  const auto broken = std::ranges::count_if(of_chunk, [](int reads) { return reads > 0; });
  EXPECT_GE(broken, 64);
  EXPECT_LE(broken, 128);
  EXPECT_EQ(positions.Room(BenchPositions::kChunkBytes), kChunks - static_cast<uint64_t>(broken));
  EXPECT_LT(std::ranges::max(of_chunk), 3 * 3 * 8192 / 64);
}

TEST(BenchPositions, what_is_given_back_can_be_taken_again) {
  const std::vector<uint64_t> sizes = {100 << 20, 3 << 20, 64 << 20};
  BenchPositions positions(sizes, 3);
  const uint64_t before = positions.Room(BenchPositions::kChunkBytes);
  const auto places = *positions.Take(100, 1 << 20);
  EXPECT_LT(positions.Room(BenchPositions::kChunkBytes), before);
  positions.GiveBack(places, 1 << 20);
  EXPECT_EQ(positions.Room(BenchPositions::kChunkBytes), before);
  EXPECT_EQ(positions.Room(1 << 20), 167u);
}

}  // namespace
}  // namespace forebay::engine
