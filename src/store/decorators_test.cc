// Retry, limit and meter in virtual time, over a store whose answers the test gives by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/limit_store.h"
#include "store/memory/memory_store.h"
#include "store/meter_store.h"
#include "store/retry_store.h"
#include "testing/manual_executor.h"

namespace forebay::store {
namespace {

using namespace std::chrono_literals;
using forebay::testing::ManualExecutor;

// Keeps every read until the test answers it; the other verbs fail at once.
class HeldStore final : public Decorator<HeldStore> {
 public:
  struct Held {
    ReadRequest request;
    Callback<ReadResult> on_done;
    bool cancelled = false;
  };

  explicit HeldStore(ManualExecutor& executor)
      : Decorator(MemoryStore::Make(&executor, {})), executor_(executor) {}

  void Cancel(OpId op) override {
    const auto found = held.find(op);
    if (found == held.end() || found->second.cancelled) return;
    found->second.cancelled = true;
    executor_.Post([this, op] { Answer(op, Status(Code::kCancelled, "cancelled")); });
  }
  void Promote(OpId op) override { promoted.push_back(op); }
  void Answer(OpId op, Result<ReadResult> result) {
    auto node = held.extract(op);
    ASSERT_FALSE(node.empty());
    node.mapped().on_done(std::move(result));
  }
  // The oldest that is held.
  void Answer(Result<ReadResult> result) {
    ASSERT_FALSE(held.empty());
    Answer(held.begin()->first, std::move(result));
  }

  std::map<OpId, Held> held;
  std::vector<OpId> promoted;
  OpId started = 0;

 private:
  friend class Decorator<HeldStore>;
  template <class Request, class T>
  OpId RunOp(Verb, StartMethod<Request, T>, Request request, Callback<T> on_done) {
    const OpId op = ++started;
    if constexpr (std::is_same_v<T, ReadResult>) {
      held.emplace(op, Held{std::move(request), std::move(on_done)});
    } else {
      executor_.Post(
          [done = std::move(on_done)]() mutable { done(Status(Code::kNotFound, "nothing here")); });
    }
    return op;
  }
  ManualExecutor& executor_;
};

Status Failure(Code code) { return Status(code, "failed"); }

struct Outcome {
  std::optional<Result<ReadResult>> result;
  int calls = 0;
  Callback<ReadResult> Taker() {
    return [this](Result<ReadResult> given) {
      ++calls;
      result = std::move(given);
    };
  }
  Code code() const { return result ? result->code() : Code::kInternal; }
};

class DecoratorsTest : public ::testing::Test {
 protected:
  ReadRequest Request(Priority priority = Priority::kDemand, Time deadline = kNever) {
    return {.key = "k",
            .etag = "",
            .range = {0, 4},
            .target = {bytes_},
            .options = {.deadline = deadline, .priority = priority}};
  }
  std::unique_ptr<RetryStore> Retry(RetryOptions options = {}) {
    options.on_retry = [this](Verb, Code) { ++retries_; };
    return std::make_unique<RetryStore>(inner_, options);
  }

  ManualExecutor executor_;
  std::shared_ptr<HeldStore> inner_ = std::make_shared<HeldStore>(executor_);
  std::array<std::byte, 4> bytes_{};
  int retries_ = 0;
};

TEST_F(DecoratorsTest, retry_repeats_what_may_pass_and_says_how_often) {
  auto store = Retry();
  Outcome outcome;
  store->StartRead(Request(), outcome.Taker());
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted, Code::kDataLoss}) {
    inner_->Answer(Failure(code));
    EXPECT_TRUE(inner_->held.empty());  // first the wait
    executor_.RunAll();
    ASSERT_EQ(inner_->held.size(), 1U);
  }
  inner_->Answer(ReadResult{.bytes = 4});
  ASSERT_EQ(outcome.calls, 1);
  ASSERT_EQ(outcome.code(), Code::kOk);
  EXPECT_EQ((*outcome.result)->attempts, 4);
  EXPECT_EQ((*outcome.result)->total, executor_.Now() - Time{});
  EXPECT_EQ(retries_, 3);
}

TEST_F(DecoratorsTest, retry_gives_back_at_once_what_cannot_pass) {
  for (const Code code : {Code::kNotFound, Code::kPermissionDenied, Code::kPreconditionFailed,
                          Code::kInvalidArgument, Code::kCancelled, Code::kDeadlineExceeded}) {
    auto store = Retry();
    Outcome outcome;
    store->StartRead(Request(), outcome.Taker());
    inner_->Answer(Failure(code));
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.code(), code);
    EXPECT_EQ(outcome.result->status().detail().attempt, 1);
  }
}

TEST_F(DecoratorsTest, retry_ends_after_its_attempts_with_the_last_error) {
  auto store = Retry({.max_attempts = 3});
  Outcome outcome;
  store->StartRead(Request(), outcome.Taker());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(outcome.calls, 0);
    inner_->Answer(Failure(Code::kUnavailable));
    executor_.RunAll();
  }
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.code(), Code::kUnavailable);
  EXPECT_EQ(outcome.result->status().detail().attempt, 3);
  EXPECT_NE(outcome.result->status().ToString().find("after 3 attempts"), std::string::npos);
}

TEST_F(DecoratorsTest, retry_waits_within_a_doubling_bound_and_not_always_the_same) {
  std::vector<Duration> first_waits;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto store =
        Retry({.max_attempts = 8, .first_wait = 100ms, .longest_wait = 500ms, .seed = seed});
    Outcome outcome;
    store->StartRead(Request(), outcome.Taker());
    for (const Duration bound : {100ms, 200ms, 400ms, 500ms, 500ms}) {
      const Time before = executor_.Now();
      inner_->Answer(Failure(Code::kDataLoss));
      executor_.RunAll();
      EXPECT_LE(executor_.Now() - before, bound);
      if (bound == Duration(100ms)) first_waits.push_back(executor_.Now() - before);
    }
    inner_->Answer(Failure(Code::kNotFound));
  }
  EXPECT_LT(*std::ranges::min_element(first_waits), 20ms);
  EXPECT_GT(*std::ranges::max_element(first_waits), 80ms);
}

// As every restart of a server is one.
TEST_F(DecoratorsTest, retry_sits_out_an_outage_of_seconds_with_the_usual_number_of_attempts) {
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      auto store = Retry({.seed = seed});
      Outcome outcome;
      const Time began = executor_.Now();
      store->StartRead(Request(), outcome.Taker());
      while (outcome.calls == 0) {
        if (executor_.Now() - began < 3500ms) {
          inner_->Answer(Failure(code));
        } else {
          inner_->Answer(ReadResult{});
        }
        executor_.RunAll();
      }
      EXPECT_EQ(outcome.code(), Code::kOk) << seed;
      EXPECT_LT(executor_.Now() - began, 15s);
    }
  }
}

TEST_F(DecoratorsTest, retry_looks_at_once_when_somebody_begins_to_wait_for_it) {
  auto store = Retry();
  Outcome outcome;
  const auto op = store->StartRead(Request(Priority::kFar), outcome.Taker());
  for (int attempt = 1; attempt < 4; ++attempt) {
    inner_->Answer(Failure(Code::kUnavailable));
    executor_.RunAll();
  }
  inner_->Answer(Failure(Code::kUnavailable));  // seconds to wait
  const Time before = executor_.Now();
  store->Promote(op);
  store->Promote(op);
  EXPECT_TRUE(inner_->held.empty());
  executor_.RunAll();
  EXPECT_LE(executor_.Now() - before, 50ms);
  ASSERT_EQ(inner_->held.size(), 1U);
  inner_->Answer(ReadResult{});
  EXPECT_EQ(outcome.calls, 1);
}

TEST_F(DecoratorsTest, retry_gives_every_request_a_deadline_and_keeps_a_nearer_one) {
  auto store = Retry({.budget = 10s});
  Outcome far;
  Outcome near;
  store->StartRead(Request(), far.Taker());
  EXPECT_EQ(inner_->held.begin()->second.request.options.deadline, executor_.Now() + 10s);
  inner_->Answer(Failure(Code::kNotFound));
  store->StartRead(Request(Priority::kDemand, executor_.Now() + 2s), near.Taker());
  EXPECT_EQ(inner_->held.begin()->second.request.options.deadline, executor_.Now() + 2s);
  executor_.Advance(2s);
  inner_->Answer(Failure(Code::kUnavailable));  // no wait fits any more
  EXPECT_EQ(near.calls, 1);
  EXPECT_EQ(near.code(), Code::kUnavailable);
}

TEST_F(DecoratorsTest, retry_leaves_a_transfer_the_deadline_that_its_bytes_need) {
  const auto store = Retry({.budget = 60s});
  Outcome outcome;
  store->StartRead(Request(Priority::kBulk, executor_.Now() + 3600s), outcome.Taker());
  const Time begun = executor_.Now();
  EXPECT_EQ(inner_->held.begin()->second.request.options.deadline, begun + 3600s);
  executor_.Advance(100s);
  inner_->Answer(Failure(Code::kUnavailable));
  executor_.Advance(20s);
  ASSERT_FALSE(inner_->held.empty());  // there is time for another attempt
  inner_->Answer(ReadResult{});
  EXPECT_TRUE(outcome.result && outcome.result->ok());
}

TEST_F(DecoratorsTest, retry_can_be_cancelled_in_an_attempt_and_between_two) {
  auto store = Retry();
  Outcome within;
  const auto op = store->StartRead(Request(), within.Taker());
  store->Cancel(op);
  EXPECT_EQ(within.calls, 0);
  executor_.RunAll();
  EXPECT_EQ(within.calls, 1);
  EXPECT_EQ(within.code(), Code::kCancelled);

  Outcome between;
  const auto second = store->StartRead(Request(), between.Taker());
  inner_->Answer(Failure(Code::kUnavailable));
  store->Cancel(second);
  store->Cancel(second);
  EXPECT_EQ(between.calls, 0);
  executor_.RunAll();
  EXPECT_EQ(between.calls, 1);
  EXPECT_EQ(between.code(), Code::kCancelled);
  EXPECT_TRUE(inner_->held.empty());
  store->Cancel(second);
  store->Cancel(op);

  Outcome late;  // the attempt fails by itself while the cancel is on its way
  const auto third = store->StartRead(Request(), late.Taker());
  const auto attempt = inner_->held.begin()->first;
  inner_->held.begin()->second.cancelled = true;
  store->Cancel(third);
  inner_->Answer(attempt, Failure(Code::kUnavailable));
  executor_.RunAll();
  EXPECT_EQ(late.calls, 1);
  EXPECT_TRUE(inner_->held.empty());
}

TEST_F(DecoratorsTest, in_an_outage_all_retries_together_are_a_trickle) {
  auto tokens = std::make_shared<RetryTokens>();
  std::vector<std::unique_ptr<RetryStore>> stores;
  stores.reserve(4);
  for (uint64_t i = 0; i < 4; ++i) stores.push_back(Retry({.seed = i, .tokens = tokens}));
  std::array<Outcome, 300> outcomes;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    stores[i % 4]->StartRead(Request(), outcomes[i].Taker());
  }
  while (!inner_->held.empty()) inner_->Answer(Failure(Code::kUnavailable));
  executor_.Advance(1s);
  const size_t at_once = inner_->held.size();
  EXPECT_GE(at_once, 50U);
  EXPECT_LE(at_once, 56U);
  executor_.Advance(10s);
  EXPECT_LE(inner_->held.size(), at_once + 50);
  EXPECT_GE(inner_->held.size(), at_once + 49);
  // Nothing has failed for that, and what succeeds gives back what it took.
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 0);
  for (int i = 0; i < 60; ++i) {
    while (!inner_->held.empty()) inner_->Answer(ReadResult{});
    executor_.Advance(1s);
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code(), Code::kOk);
  EXPECT_EQ(tokens->Take(500, executor_.Now()), Duration::zero());
}

TEST(RetryTokens, are_one_bucket_for_one_service_in_the_process) {
  EXPECT_EQ(RetryTokens::OfProcess("a"), RetryTokens::OfProcess("a"));
  EXPECT_NE(RetryTokens::OfProcess("a"), RetryTokens::OfProcess("b"));
  RetryTokens tokens;
  const Time now = Time{} + 1h;
  EXPECT_EQ(tokens.Take(500, now), Duration::zero());
  EXPECT_EQ(tokens.Take(50, now), 1s);
  tokens.GiveBack(50);
  EXPECT_EQ(tokens.Take(5, now), 100ms);
  EXPECT_EQ(tokens.Take(5, now + 1min), Duration::zero());
}

TEST_F(DecoratorsTest, limit_admits_so_many_and_keeps_two_for_demand) {
  LimitStore store(inner_, {.in_flight = 4});
  std::array<Outcome, 8> outcomes;
  for (size_t i = 0; i < 4; ++i) {
    store.StartRead(Request(Priority::kFar), outcomes[i].Taker());
  }
  EXPECT_EQ(inner_->held.size(), 2U);
  EXPECT_EQ(store.waiting(), 2U);
  for (size_t i = 4; i < 7; ++i) store.StartRead(Request(), outcomes[i].Taker());
  EXPECT_EQ(inner_->held.size(), 4U);  // two of the three demands
  EXPECT_EQ(store.waiting(), 3U);
  while (!inner_->held.empty()) {
    EXPECT_LE(inner_->held.size(), 4U);
    inner_->Answer(ReadResult{});
  }
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(outcomes[i].calls, 1) << i;
  EXPECT_EQ(store.in_flight(), 0U);
  EXPECT_EQ(store.waiting(), 0U);
}

TEST_F(DecoratorsTest, limit_serves_the_waiting_by_priority_then_in_order) {
  LimitStore store(inner_, {.in_flight = 3});
  Outcome first;
  store.StartRead(Request(Priority::kSoon), first.Taker());
  std::array<Outcome, 4> waiting;
  const std::array priorities{Priority::kBulk, Priority::kFar, Priority::kSoon, Priority::kSoon};
  for (size_t i = 0; i < 4; ++i) {
    store.StartRead(Request(priorities[i]), waiting[i].Taker());
  }
  std::vector<size_t> order;
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(inner_->held.size(), 1U);
    inner_->Answer(ReadResult{});
    for (size_t i = 0; i < 4; ++i) {
      if (waiting[i].calls == 1 && std::ranges::find(order, i) == order.end()) order.push_back(i);
    }
  }
  EXPECT_EQ(order, (std::vector<size_t>{2, 3, 1, 0}));
}

TEST_F(DecoratorsTest, limit_lets_a_promoted_request_go_ahead_of_all_others) {
  LimitStore store(inner_, {.in_flight = 3});
  std::array<Outcome, 4> outcomes;
  std::array<ObjectStore::OpId, 4> ops{};
  for (size_t i = 0; i < 4; ++i) {
    ops[i] = store.StartRead(Request(Priority::kFar), outcomes[i].Taker());
  }
  EXPECT_EQ(inner_->held.size(), 1U);
  store.Promote(ops[3]);
  ASSERT_EQ(inner_->held.size(), 2U);  // demand may use what is kept for it
  EXPECT_EQ(inner_->held.rbegin()->second.request.options.priority, Priority::kDemand);
  store.Promote(ops[3]);
  EXPECT_EQ(inner_->promoted, std::vector<ObjectStore::OpId>{2});
  while (!inner_->held.empty()) inner_->Answer(ReadResult{});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(store.in_flight(), 0U);
  EXPECT_EQ(store.waiting(), 0U);
}

TEST_F(DecoratorsTest, retry_remembers_a_promotion_for_the_attempts_to_come) {
  auto store = Retry();
  Outcome outcome;
  const auto op = store->StartRead(Request(Priority::kFar), outcome.Taker());
  store->Promote(op);
  EXPECT_EQ(inner_->promoted, std::vector<ObjectStore::OpId>{1});
  inner_->Answer(Failure(Code::kUnavailable));
  executor_.RunAll();
  ASSERT_EQ(inner_->held.size(), 1U);
  EXPECT_EQ(inner_->held.begin()->second.request.options.priority, Priority::kDemand);
  inner_->Answer(ReadResult{});
  store->Promote(op);  // over: no effect
  EXPECT_EQ(outcome.calls, 1);
}

TEST_F(DecoratorsTest, limit_ends_a_waiting_request_on_cancel_deadline_and_full_queue) {
  LimitStore store(inner_, {.in_flight = 3, .queue_limit = 2});
  Outcome running;
  Outcome cancelled;
  Outcome late;
  Outcome refused;
  store.StartRead(Request(Priority::kFar), running.Taker());
  const auto op = store.StartRead(Request(Priority::kFar), cancelled.Taker());
  store.StartRead(Request(Priority::kFar, executor_.Now() + 1s), late.Taker());
  store.StartRead(Request(Priority::kFar), refused.Taker());
  EXPECT_EQ(refused.calls, 0);
  store.Cancel(op);
  store.Cancel(op);
  EXPECT_EQ(cancelled.calls, 0);
  executor_.RunAll();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(cancelled.code(), Code::kCancelled);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(store.waiting(), 0U);
  inner_->Answer(ReadResult{});
  EXPECT_TRUE(inner_->held.empty());
  for (const Outcome* outcome : {&running, &cancelled, &late, &refused}) {
    EXPECT_EQ(outcome->calls, 1);
  }
}

TEST_F(DecoratorsTest, limit_passes_a_cancel_on_once_admitted) {
  LimitStore store(inner_, LimitOptions{});
  Outcome outcome;
  store.Cancel(store.StartRead(Request(), outcome.Taker()));
  executor_.RunAll();
  EXPECT_EQ(outcome.code(), Code::kCancelled);
  EXPECT_EQ(store.in_flight(), 0U);
}

TEST_F(DecoratorsTest, limit_gives_back_the_bandwidth_that_a_failed_read_did_not_use) {
  struct Case {
    uint64_t came;
    Result<ReadResult> answer;
    // Two seconds, as the first of its size is paid for twice, less 50 ms of catching up.
    Duration until_next;
  };
  std::vector<Case> cases;
  cases.push_back({4, ReadResult{.bytes = 4}, 1950ms});
  cases.push_back({4, Failure(Code::kDataLoss), 1950ms});
  cases.push_back({1, Failure(Code::kUnavailable), 1200ms});
  cases.push_back({0, Failure(Code::kCancelled), 950ms});
  for (Case& one : cases) {
    executor_.Advance(1h);
    LimitStore store(inner_, std::make_shared<Admission>(executor_, LimitOptions{.bandwidth = 4},
                                                         NodeLimits::OfProcess()));
    Outcome first;
    Outcome next;
    store.StartRead(Request(), first.Taker());
    const Time began = executor_.Now();
    ASSERT_EQ(inner_->held.size(), 1U);
    EXPECT_EQ(inner_->held.begin()->second.request.progress->bytes, 0U);
    inner_->held.begin()->second.request.progress->bytes = one.came;
    inner_->Answer(std::move(one.answer));
    store.StartRead(Request(), next.Taker());
    EXPECT_TRUE(inner_->held.empty());
    while (inner_->held.empty() && executor_.RunOne()) {
    }
    EXPECT_GE(executor_.Now() - began, one.until_next) << one.came;
    EXPECT_LE(executor_.Now() - began, one.until_next + 2ms) << one.came;
    inner_->Answer(ReadResult{});
  }
}

TEST_F(DecoratorsTest, meter_counts_by_verb_and_code) {
  MeterStore store(inner_, std::make_shared<StoreCounters>());
  Outcome good;
  Outcome bad;
  store.StartRead(Request(), good.Taker());
  store.StartRead(Request(), bad.Taker());
  EXPECT_EQ(store.counters().in_flight, 2U);
  executor_.Advance(10ms);
  inner_->Answer(ReadResult{.bytes = 4, .first_byte = 3ms});
  inner_->Answer(Failure(Code::kUnavailable));
  std::optional<Code> head;
  store.StartHead({.key = "x"}, [&](Result<ObjectInfo> result) { head = result.code(); });
  executor_.RunAll();
  EXPECT_EQ(head, Code::kNotFound);
  const VerbCounters& reads = store.counters().of(Verb::kRead);
  EXPECT_EQ(reads.finished(), 2U);
  EXPECT_EQ(reads.errors(), 1U);
  EXPECT_EQ(reads.results[static_cast<size_t>(Code::kUnavailable)], 1U);
  EXPECT_EQ(reads.bytes, 4U);
  EXPECT_EQ(reads.total.count(), 1U);
  EXPECT_EQ(reads.total.sum(), 10ms);
  EXPECT_EQ(reads.first_byte.sum(), 3ms);
  EXPECT_EQ(store.counters().of(Verb::kHead).errors(), 1U);
  EXPECT_EQ(store.counters().in_flight, 0U);
}

TEST(LatencyHistogram, quantiles_are_within_a_bucket) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), Duration::zero());
  for (int ms = 1; ms <= 1000; ++ms) histogram.Add(std::chrono::milliseconds(ms));
  for (const auto& [q, exact] : {std::pair{0.5, 500ms}, {0.99, 990ms}, {0.1, 100ms}}) {
    EXPECT_GE(histogram.Quantile(q), exact);
    EXPECT_LE(histogram.Quantile(q), exact * 1.42);
  }
  histogram.Add(Duration::max() / 4);
  histogram.Add(Duration(-1));
  EXPECT_EQ(histogram.count(), 1002U);
}

}  // namespace
}  // namespace forebay::store
