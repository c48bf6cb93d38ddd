#include "order/run_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "order/order_digest.h"

namespace forebay::order {
namespace {

RunOrder MakeOrder(const RunSpec& spec) {
  auto order = RunOrder::Make(spec);
  EXPECT_TRUE(order.ok()) << order.status().ToString();
  return *std::move(order);
}

RunSpec One(uint64_t samples, uint64_t epoch_samples = 0) {
  return {.seed = 7,
          .sources = {{"", GlobalShuffle{}, {{0, samples}}}},
          .epoch_samples = epoch_samples};
}

TEST(RunOrder, a_single_source_is_its_epochs_orders) {
  RunOrder order = MakeOrder(One(100));
  EpochOrder epoch({100, 7, GlobalShuffle{}}, 3);
  EXPECT_EQ(order.EpochSamples(3), 100U);
  for (uint64_t i = 0; i < 100; ++i) {
    const Place place = order.At(3, i);
    EXPECT_EQ(place, (Place{0, epoch.SampleAt(i), 3}));
    EXPECT_EQ(order.Find(3, 0, place.sample), std::vector<uint64_t>{i});
    EXPECT_EQ(order.NextUse(3, i), 400 + order.Find(4, 0, place.sample).front());
  }
}

// However long an epoch is, the source is gone through evenly.
TEST(RunOrder, many_positions_at_once_hold_what_each_holds) {
  const std::vector<uint64_t> sizes = {300, 5, 0, 1000, 77};
  const uint64_t samples = 1382;
  const auto ragged = std::make_shared<const BlockTable>(BlockTable::Ragged(sizes));
  const auto uniform = std::make_shared<const BlockTable>(BlockTable::Uniform(samples, 64));
  std::vector<RunSpec> specs = {One(samples), One(samples, 1000)};
  for (const auto& table : {ragged, uniform}) {
    RunSpec spec = One(samples);
    spec.sources[0].shuffle = BlockShuffle{.window_blocks = 2, .streams = 3, .run = 10};
    spec.sources[0].sizes[0].blocks = table;
    specs.push_back(spec);
  }
  for (const RunSpec& spec : specs) {
    RunOrder order = MakeOrder(spec);
    RunOrder other = MakeOrder(spec);
    const uint64_t end = order.EpochSamples(2);
    for (const uint64_t count : {1ULL, 7ULL, 64ULL, 500ULL}) {
      for (uint64_t first = 0; first + count <= end; first += count) {
        std::vector<Place> places(count);
        order.AtEach(2, first, places);
        for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(places[i], other.At(2, first + i));
      }
    }
  }
}

TEST(RunOrder, short_and_long_epochs_go_through_the_source_evenly) {
  for (const uint64_t epoch_samples : {1ULL, 3ULL, 10ULL, 13ULL, 25ULL}) {
    RunOrder order = MakeOrder(One(10, epoch_samples));
    std::map<uint64_t, int> seen;
    uint64_t taken = 0;
    for (uint64_t epoch = 0; epoch < 40; ++epoch) {
      std::map<uint64_t, std::vector<uint64_t>> where;
      for (uint64_t i = 0; i < epoch_samples; ++i, ++taken) {
        const Place place = order.At(epoch, i);
        EXPECT_EQ(place.source_epoch, taken / 10);
        ++seen[place.sample];
        where[place.sample].push_back(i);
        const auto [least, most] =
            std::ranges::minmax_element(seen, {}, [](const auto& entry) { return entry.second; });
        if (seen.size() == 10) {
          EXPECT_LE(most->second - least->second, 1);
        }
      }
      for (uint64_t sample = 0; sample < 10; ++sample) {
        EXPECT_EQ(order.Find(epoch, 0, sample), where[sample]);
      }
    }
  }
}

TEST(RunOrder, a_source_that_grows_at_an_epochs_start_keeps_its_past) {
  RunSpec spec = One(50);
  RunOrder before = MakeOrder(spec);
  spec.sources[0].sizes.push_back({3, 80});
  RunOrder after = MakeOrder(spec);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(before.At(epoch, i), after.At(epoch, i));
  }
  EXPECT_EQ(after.EpochSamples(3), 80U);
  std::vector<bool> seen(80, false);
  for (uint64_t i = 0; i < 80; ++i) seen.at(after.At(3, i).sample) = true;
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool s) { return s; }));
  spec.sources[0].sizes.push_back({4, 79});
  EXPECT_FALSE(RunOrder::Make(spec).ok());
}

TEST(RunOrder, a_mixture_takes_each_source_in_its_own_order_once_per_source_epoch) {
  RunSpec spec{.seed = 3,
               .sources = {{"web", GlobalShuffle{}, {{0, 30}}}, {"code", Sequential{}, {{0, 7}}}},
               .epoch_samples = 0,
               .mixture_block = 10,
               .mixture = {{0, {7, 3}}, {100, {1, 1}}}};
  RunOrder order = MakeOrder(spec);
  EXPECT_EQ(order.EpochSamples(0), 37U);
  std::vector<uint64_t> counts(2, 0);
  for (uint64_t epoch = 0; epoch < 8; ++epoch) {
    EXPECT_EQ(order.CountsBefore(epoch, 0), counts);
    for (uint64_t i = 0; i < 37; ++i) {
      const Place place = order.At(epoch, i);
      const uint64_t size = place.source == 0 ? 30 : 7;
      EXPECT_EQ(place.source_epoch, counts[place.source] / size);
      if (place.source == 1) {
        EXPECT_EQ(place.sample, counts[1] % 7);
      }
      ++counts[place.source];
      const auto found = order.Find(epoch, place.source, place.sample);
      EXPECT_TRUE(std::ranges::find(found, i) != found.end());
      const Place other = order.SubstituteFor(place, epoch, i, 1);
      EXPECT_EQ(other.source, place.source);
      EXPECT_LT(other.sample, size);
    }
  }
  // Another order of the sources is the same run.
  std::swap(spec.sources[0], spec.sources[1]);
  for (MixturePiece& piece : spec.mixture) std::swap(piece.weights[0], piece.weights[1]);
  RunOrder swapped = MakeOrder(spec);
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> ours;
  for (uint64_t i = 0; i < 30; ++i) {
    Place place = swapped.At(0, i);
    if (place.source == 1) ++ours[{0, place.sample}];
    const Place was = order.At(0, i);
    if (was.source == 0) --ours[{0, was.sample}];
  }
  EXPECT_TRUE(std::ranges::all_of(ours, [](const auto& e) { return e.second == 0; }));
}

TEST(RunOrder, what_makes_no_run_is_refused) {
  EXPECT_FALSE(RunOrder::Make({}).ok());
  EXPECT_FALSE(RunOrder::Make(One(0)).ok());
  RunSpec twins{.sources = {{"a", Sequential{}, {{0, 5}}}, {"a", Sequential{}, {{0, 5}}}},
                .mixture = {{0, {1, 1}}}};
  EXPECT_FALSE(RunOrder::Make(twins).ok());
  twins.sources[1].name = "b";
  EXPECT_TRUE(RunOrder::Make(twins).ok());
  twins.mixture[0].weights.push_back(1);
  EXPECT_FALSE(RunOrder::Make(twins).ok());
}

TEST(OrderDigest, is_a_frozen_function_of_the_samples_in_their_order) {
  OrderDigest a;
  a.Add({0, 5, 0});
  a.Add({1, 6, 2});
  OrderDigest b;
  b.Add({1, 6, 2});
  b.Add({0, 5, 0});
  EXPECT_NE(a, b);
  EXPECT_EQ(*OrderDigest::From(a.ToHex()), a);
  EXPECT_EQ(a.ToHex(), "6cdcca4f89964ce1f4de3727fb5ae63c");
  EXPECT_FALSE(OrderDigest::From("12").ok());
  EXPECT_FALSE(OrderDigest::From(std::string(32, 'g')).ok());
}

}  // namespace
}  // namespace forebay::order
