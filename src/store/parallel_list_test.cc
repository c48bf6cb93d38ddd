#include "store/parallel_list.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "store/decorator.h"
#include "store/memory/memory_store.h"
#include "testing/manual_executor.h"

namespace forebay::store {
namespace {

using Cut = ObjectStore::ListCut;
constexpr auto kLatency = std::chrono::milliseconds(100);

// What a listing of a store with these keys brings.
class Listing {
 public:
  explicit Listing(const std::vector<std::string>& keys, Cut cut = Cut::kKeys)
      : store_(MemoryStore::Make(
            &executor_, {.latency = [](const auto&) { return kLatency; }, .list_cut = cut})) {
    for (const std::string& key : keys) store_->Insert(key, {});
  }

  void Start(const std::string& prefix, ParallelListOptions options = {}, bool consume = true) {
    began_ = executor_.Now();
    list_ = ParallelList::Start(
        store_.get(), prefix, options,
        [this, consume](ListPage page) {
          for (const ObjectInfo& object : page.objects) got.push_back(object.key);
          if (consume) list()->Consumed(page.objects.size());
        },
        [this](Status status) {
          EXPECT_FALSE(end.has_value());
          end = std::move(status);
        });
  }
  std::vector<std::string> All(const std::string& prefix, ParallelListOptions options = {}) {
    Start(prefix, options);
    executor_.RunAll();
    EXPECT_TRUE(end.has_value() && end->ok());
    return got;
  }
  double turns() const { return static_cast<double>((executor_.Now() - began_) / kLatency); }
  ParallelList* list() const { return list_.get(); }
  testing::ManualExecutor& executor() { return executor_; }
  MemoryStore& store() { return *store_; }

  std::vector<std::string> got;
  std::optional<Status> end;

 private:
  testing::ManualExecutor executor_;
  std::shared_ptr<MemoryStore> store_;
  std::shared_ptr<ParallelList> list_;
  Time began_{};
};

std::vector<std::string> Numbered(const std::string& format, int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back(fmt::format(fmt::runtime(format), i));
  return keys;
}

TEST(ParallelList, a_long_flat_prefix_is_cut_by_keys_and_comes_in_order) {
  const auto keys = Numbered("data/sample-{:08}.jpg", 100'000);
  Listing listing(keys);
  EXPECT_EQ(listing.All("data/"), keys);
  EXPECT_LT(listing.turns(), 30);  // one after the other: 100
  EXPECT_LT(listing.list()->requests(), 200U);
}

TEST(ParallelList, a_short_one_costs_what_it_costs_otherwise) {
  Listing listing(Numbered("data/{:04}", 900));
  EXPECT_EQ(listing.All("data/").size(), 900U);
  EXPECT_EQ(listing.list()->requests(), 1U);
  Listing nothing(Numbered("data/{:04}", 10));
  EXPECT_TRUE(nothing.All("other/").empty());
}

TEST(ParallelList, where_keys_come_in_another_order_it_is_cut_at_folders) {
  std::vector<std::string> keys;
  for (int folder = 0; folder < 20; ++folder) {
    for (int i = 0; i < 5000; ++i) {
      keys.push_back(fmt::format("set/only/scene-{:02}/{:05}.mp4", folder, i));
    }
  }
  keys.push_back("set/only/readme");
  std::ranges::sort(keys);
  Listing listing(keys, Cut::kFolders);
  EXPECT_EQ(listing.All("set/"), keys);
  EXPECT_LT(listing.turns(), 30);
  EXPECT_LT(listing.list()->requests(), 130U);
}

TEST(ParallelList, many_small_folders_are_not_asked_for_one_by_one) {
  std::vector<std::string> keys;
  for (int folder = 0; folder < 3000; ++folder) {
    for (int i = 0; i < 3; ++i) keys.push_back(fmt::format("set/{:04}/{}", folder, i));
  }
  Listing listing(keys, Cut::kFolders);
  EXPECT_EQ(listing.All("set/"), keys);
  EXPECT_EQ(listing.list()->requests(), 10U);  // nine pages, and one look
}

TEST(ParallelList, a_store_that_gains_nothing_is_listed_by_one_request_after_another) {
  const auto keys = Numbered("{:05}", 10'500);
  Listing listing(keys, Cut::kNone);
  EXPECT_EQ(listing.All(""), keys);
  EXPECT_EQ(listing.list()->requests(), 11U);
}

// Whatever the keys are: each once, in order.
TEST(ParallelList, every_key_comes_exactly_once_whatever_it_is_made_of) {
  const std::vector<std::string> pieces{"a",    "b/", "/", "é", "日", "0",  "00", "~",   " ",
                                        "\x01", "z",  "-", ".", "A",  "9/", "%",  "\x7f"};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    std::vector<std::string> keys;
    for (int i = 0; i < 12'000; ++i) {
      std::string key = "p/";
      const uint64_t length = 1 + random.NextBelow(6);
      for (uint64_t k = 0; k < length; ++k) key += pieces[random.NextBelow(pieces.size())];
      keys.push_back(std::move(key));
    }
    std::ranges::sort(keys);
    keys.erase(std::ranges::unique(keys).begin(), keys.end());
    for (const Cut cut : {Cut::kKeys, Cut::kFolders}) {
      Listing listing(keys, cut);
      EXPECT_EQ(listing.All("p/", {.in_flight = 1 + random.NextBelow(20)}), keys) << seed;
    }
  }
}

TEST(ParallelList, it_halts_while_nobody_takes_what_it_brings) {
  const auto keys = Numbered("{:06}", 200'000);
  Listing listing(keys);
  listing.Start("", {.in_flight = 4, .keys_ahead = 10'000}, /*consume=*/false);
  for (int i = 0; i < 20; ++i) listing.executor().Advance(kLatency);
  const size_t before = listing.got.size();
  EXPECT_LT(listing.list()->requests(), 60U);
  // The first part goes on however much waits: the receiver must be able to get to the end.
  EXPECT_GT(before, 0U);
  listing.list()->Cancel();
  listing.executor().RunAll();
  EXPECT_EQ(listing.end->code(), Code::kCancelled);
}

TEST(ParallelList, cancelled_it_ends_once_with_nothing_in_flight) {
  Listing listing(Numbered("{:06}", 50'000));
  listing.Start("");
  for (int i = 0; i < 5; ++i) listing.executor().Advance(kLatency);
  EXPECT_FALSE(listing.end.has_value());
  listing.list()->Cancel();
  listing.list()->Cancel();
  listing.executor().RunAll();
  ASSERT_TRUE(listing.end.has_value());
  EXPECT_EQ(listing.end->code(), Code::kCancelled);
  EXPECT_EQ(listing.store().operations_in_flight(), 0U);
}

// Spoils the answer to the request of that number, or to all.
class Spoiled final : public Decorator<Spoiled> {
 public:
  static constexpr int kAll = 0;
  using Spoil = std::function<Result<ListPage>(Result<ListPage>)>;
  Spoiled(std::shared_ptr<ObjectStore> inner, int number, Spoil spoil)
      : Decorator(std::move(inner)), number_(number), spoil_(std::move(spoil)) {}
  void Cancel(OpId op) override { inner().Cancel(op); }

 private:
  friend class Decorator<Spoiled>;
  template <class Request, class T>
  OpId RunOp(Verb, StartMethod<Request, T> start, Request request, Callback<T> on_done) {
    if constexpr (std::is_same_v<T, ListPage>) {
      if (++requests_ == number_ || number_ == kAll) {
        return (inner().*start)(std::move(request),
                                [this, done = std::move(on_done)](Result<ListPage> page) mutable {
                                  done(spoil_(std::move(page)));
                                });
      }
    }
    return (inner().*start)(std::move(request), std::move(on_done));
  }
  int requests_ = 0;
  const int number_;
  Spoil spoil_;
};

Status ListSpoiled(int number, Spoiled::Spoil spoil) {
  testing::ManualExecutor executor;
  auto memory = MemoryStore::Make(&executor, {.latency = [](const auto&) { return kLatency; }});
  for (const std::string& key : Numbered("{:06}", 30'000)) memory->Insert(key, {});
  Spoiled store(memory, number, std::move(spoil));
  std::optional<Status> end;
  const auto list = ParallelList::Start(
      &store, "", {}, [](const ListPage&) {}, [&](Status status) { end = std::move(status); });
  executor.RunAll();
  EXPECT_EQ(memory->operations_in_flight(), 0U);
  return *end;
}

TEST(ParallelList, one_page_that_fails_or_is_wrong_fails_all) {
  for (const int number : {1, 2, 9}) {
    EXPECT_EQ(
        ListSpoiled(number,
                    [](const Result<ListPage>&) { return Status(Code::kUnavailable, "planted"); })
            .code(),
        Code::kUnavailable);
    EXPECT_EQ(ListSpoiled(number,
                          [](Result<ListPage> page) {
                            page->objects.resize(page->objects.size() + 2, {.key = "x"});
                            return page;
                          })
                  .code(),
              Code::kDataLoss);
  }
  EXPECT_EQ(ListSpoiled(1, [](const Result<ListPage>&) { return ListPage{}; }).code(), Code::kOk);
}

TEST(ParallelList, tokens_that_go_round_are_an_error) {
  testing::ManualExecutor executor;
  auto memory = MemoryStore::Make(&executor, {.list_cut = Cut::kFolders});
  int turn = 0;
  Spoiled store(memory, Spoiled::kAll, [&turn](Result<ListPage> page) {
    page->next_token = ++turn % 2 == 0 ? "a" : "b";
    return page;
  });
  std::optional<Status> end;
  const auto list = ParallelList::Start(
      &store, "", {}, [](const ListPage&) {}, [&](Status status) { end = std::move(status); });
  executor.RunAll();
  EXPECT_EQ(end->code(), Code::kDataLoss);
  EXPECT_EQ(turn, 3);
}

TEST(KeyBetween, halves_what_may_be_there_by_the_kind_of_its_characters) {
  EXPECT_EQ(KeyBetween("p/a", "p/e", "p/", 0), "p/c");
  EXPECT_EQ(KeyBetween("p/0001", "p/1", "p/", 0), "p/05");
  EXPECT_EQ(KeyBetween("p/9999", "p/z", "p/", 0), "p/:");
  EXPECT_EQ(KeyBetween("p/4", "", "p/", 0), "p/7");
  EXPECT_EQ(KeyBetween("p/\xc3\xa9", "p/\xc3\xbc", "p/", 0), "");
  EXPECT_EQ(KeyBetween("p/\xc3\xa9", "", "p/", 0), "");
  // A long stem: is there anything else?
  EXPECT_EQ(KeyBetween("p/sample-0099", "", "p/", 11), "p/samplf");
}

TEST(ListTokens, may_not_come_back_nor_bring_nothing_without_an_end) {
  ListTokens circle;
  EXPECT_EQ(circle.Check("a", false), "");
  EXPECT_EQ(circle.Check("b", false), "");
  EXPECT_EQ(circle.Check("a", false), "the listing repeats a continuation token");
  ListTokens endless;
  for (int i = 0; i < 9'999; ++i) ASSERT_EQ(endless.Check(fmt::format("{}", i), true), "") << i;
  EXPECT_EQ(endless.Check("x", true), "10000 pages of the listing in a row hold nothing");
  EXPECT_EQ(endless.Check("y", false), "");
  EXPECT_EQ(endless.Check("z", true), "");
}

}  // namespace
}  // namespace forebay::store
