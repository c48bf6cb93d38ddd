// Second requests in virtual time, over a store whose reads take what the test says.
#include "store/hedge_store.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <optional>

#include "store/memory/memory_store.h"
#include "testing/manual_executor.h"

namespace forebay::store {
namespace {

using namespace std::chrono_literals;
using forebay::testing::ManualExecutor;

// Each read takes the next of `plans`, else the usual 100 ms; what it writes says which it was.
class PlannedStore final : public Decorator<PlannedStore> {
 public:
  struct Plan {
    Duration first_byte = 100ms;
    Duration total = 100ms;
    Code code = Code::kOk;
  };
  explicit PlannedStore(ManualExecutor& executor)
      : Decorator(MemoryStore::Make(&executor, {})), executor_(executor) {}

  void Cancel(OpId op) override {
    if (!running.contains(op)) return;
    ++cancelled;
    executor_.Post([this, op] { Answer(op, Status(Code::kCancelled, "cancelled")); });
  }
  void Promote(OpId op) override { promoted.push_back(op); }

  std::deque<Plan> plans;
  std::map<OpId, std::pair<ReadRequest, Callback<ReadResult>>> running;
  std::vector<OpId> promoted;
  RequestOptions last_options;
  OpId started = 0;
  int cancelled = 0;

 private:
  friend class Decorator<PlannedStore>;
  template <class Request, class T>
  OpId RunOp(Verb, StartMethod<Request, T>, Request request, Callback<T> on_done) {
    const OpId op = ++started;
    if constexpr (std::is_same_v<T, ReadResult>) {
      Plan plan;
      if (!plans.empty()) {
        plan = plans.front();
        plans.pop_front();
      }
      last_options = request.options;
      running.emplace(op, std::pair(std::move(request), std::move(on_done)));
      if (plan.first_byte < plan.total) {
        executor_.PostAt(executor_.Now() + plan.first_byte, [this, op] {
          if (const auto at = running.find(op); at != running.end()) {
            *at->second.first.progress = {executor_.Now(), 1};
          }
        });
      }
      executor_.PostAt(executor_.Now() + plan.total, [this, op, plan] {
        if (plan.code != Code::kOk) {
          Answer(op, Status(plan.code, "planned"));
        } else {
          Answer(op, ReadResult{.bytes = 4, .request_id = std::to_string(op)});
        }
      });
    } else {
      executor_.Post(
          [done = std::move(on_done)]() mutable { done(Status(Code::kNotFound, "nothing here")); });
    }
    return op;
  }
  void Answer(OpId op, Result<ReadResult> result) {
    auto node = running.extract(op);
    if (node.empty()) return;
    auto& [request, on_done] = node.mapped();
    if (result.ok()) {
      request.target[0][0] = static_cast<std::byte>(op);
      request.progress->bytes = result->bytes;
    }
    on_done(std::move(result));
  }
  ManualExecutor& executor_;
};

class HedgeStoreTest : public ::testing::Test {
 protected:
  struct Outcome {
    std::optional<Result<ReadResult>> result;
    Time at{};
    int calls = 0;
    Code code() const { return result ? result->code() : Code::kInternal; }
  };

  ObjectStore::OpId Start(Outcome& outcome, Priority priority = Priority::kDemand) {
    return store_->StartRead(
        {.key = "k", .range = {0, 4}, .target = {bytes_}, .options = {.priority = priority}},
        [this, &outcome](Result<ReadResult> given) {
          ++outcome.calls;
          outcome.at = executor_.Now();
          outcome.result = std::move(given);
        });
  }
  Outcome Read(Priority priority = Priority::kDemand) {
    Outcome outcome;
    Start(outcome, priority);
    while (outcome.calls == 0 && executor_.RunOne()) {
    }
    return outcome;
  }
  // All usual: 100 ms.
  void Learn(int reads = 200) {
    for (int i = 0; i < reads; ++i) EXPECT_EQ(Read(Priority::kFar).code(), Code::kOk);
    ASSERT_EQ(counters_->started, 0U);
  }
  Duration Took(const Outcome& outcome, Time since) const { return outcome.at - since; }

  ManualExecutor executor_;
  std::shared_ptr<PlannedStore> inner_ = std::make_shared<PlannedStore>(executor_);
  std::shared_ptr<HedgeCounters> counters_ = std::make_shared<HedgeCounters>();
  std::unique_ptr<HedgeStore> store_ =
      std::make_unique<HedgeStore>(inner_, HedgeOptions{}, counters_);
  std::array<std::byte, 4> bytes_{};
};

TEST_F(HedgeStoreTest, a_lost_read_is_answered_by_a_second_request) {
  Learn();
  const Time then = executor_.Now();
  inner_->plans = {{.first_byte = 1h, .total = 1h}};
  const Outcome outcome = Read();
  ASSERT_EQ(outcome.code(), Code::kOk);
  EXPECT_TRUE((*outcome.result)->hedged);
  EXPECT_EQ((*outcome.result)->request_id, std::to_string(inner_->started));
  EXPECT_EQ(bytes_[0], static_cast<std::byte>(inner_->started));  // the second's byte, copied
  EXPECT_LT(Took(outcome, then), 270ms);
  EXPECT_GE(Took(outcome, then), 250ms);
  EXPECT_EQ(counters_->started, 1U);
  EXPECT_EQ(counters_->won, 1U);
  EXPECT_TRUE(inner_->running.empty());
  EXPECT_TRUE(inner_->last_options.other_address);
}

TEST_F(HedgeStoreTest, the_first_answer_wins_and_the_other_request_is_cancelled) {
  Learn();
  inner_->plans = {{.first_byte = 200ms, .total = 200ms}, {.first_byte = 300ms, .total = 300ms}};
  const Outcome outcome = Read();
  ASSERT_EQ(outcome.code(), Code::kOk);
  EXPECT_FALSE((*outcome.result)->hedged);
  EXPECT_EQ(bytes_[0], static_cast<std::byte>(inner_->started - 1));
  EXPECT_EQ(counters_->started, 1U);
  EXPECT_EQ(counters_->won, 0U);
  EXPECT_EQ(inner_->cancelled, 1);
  EXPECT_TRUE(inner_->running.empty());
}

TEST_F(HedgeStoreTest, a_body_that_stops_is_late_by_the_bound_of_whole_bodies) {
  Learn();
  const Time then = executor_.Now();
  inner_->plans = {{.first_byte = 20ms, .total = 1h}};
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.code(), Code::kOk);
  EXPECT_LT(Took(outcome, then), 500ms);
  EXPECT_EQ(counters_->won, 1U);
  EXPECT_EQ(counters_->wasted_bytes, 1U);  // of the one that lost
}

TEST_F(HedgeStoreTest, a_failed_first_waits_for_the_second_and_the_reverse) {
  Learn();
  inner_->plans = {{.first_byte = 200ms, .total = 200ms, .code = Code::kUnavailable}};
  EXPECT_EQ(Read().code(), Code::kOk);
  EXPECT_EQ(counters_->won, 1U);
  inner_->plans = {{.first_byte = 290ms, .total = 290ms},
                   {.first_byte = 20ms, .total = 20ms, .code = Code::kUnavailable},
                   {.first_byte = 1h, .total = 1h}};
  EXPECT_EQ(Read().code(), Code::kOk);
  EXPECT_EQ(counters_->started, 3U);  // a failed second is replaced, once
  EXPECT_EQ(counters_->won, 1U);
  inner_->plans = {{.first_byte = 200ms, .total = 200ms, .code = Code::kUnavailable},
                   {.first_byte = 200ms, .total = 200ms, .code = Code::kDataLoss}};
  EXPECT_EQ(Read().code(), Code::kUnavailable);
  EXPECT_TRUE(inner_->running.empty());
}

TEST_F(HedgeStoreTest, a_second_that_is_lost_as_well_makes_room_for_another) {
  Learn();
  const Time then = executor_.Now();
  inner_->plans = {{.first_byte = 1h, .total = 1h}, {.first_byte = 1h, .total = 1h}};
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.code(), Code::kOk);
  EXPECT_LT(Took(outcome, then), 1s);
  EXPECT_EQ(counters_->started, 2U);
  EXPECT_TRUE(inner_->running.empty());
}

TEST_F(HedgeStoreTest, what_no_request_can_change_is_given_back_at_once) {
  Learn();
  const Time then = executor_.Now();
  inner_->plans = {{.first_byte = 160ms, .total = 160ms, .code = Code::kNotFound},
                   {.first_byte = 1h, .total = 1h}};
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.code(), Code::kNotFound);
  EXPECT_EQ(counters_->started, 1U);
  EXPECT_EQ(Took(outcome, then), 160ms);
}

TEST_F(HedgeStoreTest, demand_is_hedged_sooner_than_prefetch_and_a_promotion_counts_at_once) {
  Learn();
  Time then = executor_.Now();
  inner_->plans = {{.first_byte = 1h, .total = 1h}};
  const Duration far = Took(Read(Priority::kFar), then);
  then = executor_.Now();
  inner_->plans = {{.first_byte = 1h, .total = 1h}};
  const Duration demand = Took(Read(), then);
  EXPECT_LT(demand + 30ms, far);

  inner_->plans = {{.first_byte = 1h, .total = 1h}};
  Outcome outcome;
  const auto op = Start(outcome, Priority::kFar);
  executor_.Advance(180ms);
  const auto before = inner_->started;
  store_->Promote(op);
  EXPECT_EQ(inner_->started, before + 1);  // it is later than demand's bound already
  store_->Promote(op);
  executor_.Advance(100ms);
  EXPECT_EQ(outcome.code(), Code::kOk);
  EXPECT_EQ(outcome.calls, 1);
}

TEST_F(HedgeStoreTest, cancel_ends_both_requests_and_calls_back_once) {
  Learn();
  inner_->plans = {{.first_byte = 1h, .total = 1h}, {.first_byte = 1h, .total = 1h}};
  Outcome outcome;
  const auto op = Start(outcome);
  executor_.Advance(300ms);
  EXPECT_EQ(inner_->running.size(), 2U);
  store_->Cancel(op);
  store_->Cancel(op);
  EXPECT_EQ(outcome.calls, 0);
  executor_.Advance(0ms);
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.code(), Code::kCancelled);
  EXPECT_TRUE(inner_->running.empty());
  executor_.RunAll();
  EXPECT_EQ(outcome.calls, 1);
}

TEST_F(HedgeStoreTest, second_requests_stay_within_the_budget) {
  Learn();
  constexpr int kReads = 3000;
  // One in eleven is lost, more than the budget allows for.
  for (int i = 0; i < kReads; ++i) {
    if (i % 11 == 0) inner_->plans = {{.first_byte = 2s, .total = 2s}};
    EXPECT_EQ(Read(Priority::kFar).code(), Code::kOk);
  }
  EXPECT_GT(counters_->started, 0.5 * 0.03 * kReads);
  EXPECT_LE(counters_->started, 0.03 * (kReads + 200) + 8 + 8);  // lost ones borrow as many
}

TEST_F(HedgeStoreTest, none_are_sent_while_the_server_says_slow_down) {
  Learn();
  for (int i = 0; i < 20; ++i) {
    inner_->plans = {{.code = Code::kResourceExhausted}};
    EXPECT_EQ(Read().code(), Code::kResourceExhausted);
  }
  inner_->plans = {{.first_byte = 2s, .total = 2s}};
  EXPECT_EQ(Read().code(), Code::kOk);
  EXPECT_EQ(counters_->started, 0U);
  EXPECT_EQ(counters_->refused, 1U);
  for (int i = 0; i < 300; ++i) Read();
  inner_->plans = {{.first_byte = 2s, .total = 2s}};
  EXPECT_EQ(Read().code(), Code::kOk);
  EXPECT_EQ(counters_->won, 1U);
}

TEST_F(HedgeStoreTest, when_everything_is_slower_the_bound_follows_and_requests_do_not_double) {
  Learn();
  constexpr int kReads = 400;
  for (int i = 0; i < kReads; ++i) {
    inner_->plans = {{.first_byte = 1s, .total = 1s}, {.first_byte = 1s, .total = 1s}};
    EXPECT_EQ(Read(Priority::kFar).code(), Code::kOk);
    inner_->plans.clear();
  }
  EXPECT_LE(counters_->started, 10U);
  inner_->plans = {{.first_byte = 1h, .total = 1h}, {.first_byte = 1s, .total = 1s}};
  const Time then = executor_.Now();
  EXPECT_LT(Took(Read(Priority::kFar), then), 3200ms);  // it is late by the new times
}

TEST_F(HedgeStoreTest, large_reads_are_hedged_only_as_far_as_the_memory_goes) {
  store_ =
      std::make_unique<HedgeStore>(inner_, HedgeOptions{.buffer_bytes = kSlabBytes}, counters_);
  Learn();
  inner_->plans.assign(8, {.first_byte = 1h, .total = 1h});
  std::array<Outcome, 2> outcomes;
  std::array<ObjectStore::OpId, 2> ops{};
  for (size_t i = 0; i < 2; ++i) ops[i] = Start(outcomes[i]);
  executor_.Advance(1s);
  EXPECT_GE(counters_->started, 1U);
  EXPECT_EQ(inner_->running.size(), 3U);  // there is room for one second request
  EXPECT_EQ(outcomes[0].calls + outcomes[1].calls, 0);
  inner_->plans.clear();
  store_->Cancel(ops[0]);
  executor_.Advance(1s);
  EXPECT_EQ(outcomes[1].code(), Code::kOk);
  EXPECT_EQ(counters_->won, 1U);
}

// Two requests have room for eight bytes; the read's result tells whoever counts of four.
TEST_F(HedgeStoreTest, what_the_loser_of_two_has_not_received_is_given_back) {
  uint64_t allowed = 0;
  uint64_t given_back = 0;
  store_ = std::make_unique<HedgeStore>(
      inner_,
      HedgeOptions{.may_send =
                       [&](uint64_t bytes) {
                         allowed += bytes;
                         return true;
                       },
                   .give_back = [&](uint64_t bytes) { given_back += bytes; }},
      counters_);
  Learn();
  inner_->plans = {{.first_byte = 20ms, .total = 1h}};
  EXPECT_TRUE((*Read().result)->hedged);
  EXPECT_EQ(allowed, 4U);
  EXPECT_EQ(given_back, 3U);  // the first had one byte
  inner_->plans = {{.first_byte = 200ms, .total = 200ms}, {.first_byte = 10ms, .total = 300ms}};
  EXPECT_FALSE((*Read().result)->hedged);
  EXPECT_EQ(allowed, 8U);
  EXPECT_EQ(given_back, 3U + 3U);  // the second had one
  inner_->plans = {{.first_byte = 1h, .total = 1h}, {.first_byte = 1h, .total = 1h}};
  Outcome outcome;
  const auto op = Start(outcome);
  executor_.Advance(300ms);
  store_->Cancel(op);
  executor_.Advance(0ms);
  EXPECT_EQ(outcome.code(), Code::kCancelled);
  EXPECT_EQ(allowed - given_back, 2U);
}

TEST_F(HedgeStoreTest, other_verbs_pass_through) {
  std::optional<Code> head;
  const auto op =
      store_->StartHead({.key = "x"}, [&](Result<ObjectInfo> result) { head = result.code(); });
  store_->Promote(op);
  EXPECT_EQ(inner_->promoted, std::vector<ObjectStore::OpId>{op});
  executor_.RunAll();
  EXPECT_EQ(head, Code::kNotFound);
}

TEST(TimeQuantiles, what_was_cut_short_counts_like_those_that_ran_on) {
  TimeQuantiles times;
  for (int i = 0; i < 90; ++i) times.Add(100ms);
  for (int i = 0; i < 5; ++i) times.Add(1s);
  for (int i = 0; i < 5; ++i) times.AddLonger(200ms);
  EXPECT_LE(times.At(0.9), 110ms);
  EXPECT_GE(times.At(0.91), 1s);
  // Nothing ran on as long: it counts as what is known of it, and no bound creeps up by it.
  TimeQuantiles lost;
  for (int i = 0; i < 90; ++i) lost.Add(100ms);
  for (int i = 0; i < 100; ++i) lost.AddLonger(std::max<Duration>(200ms, lost.At(0.99)));
  EXPECT_LE(lost.At(0.99), 220ms);
}

TEST(TimeQuantiles, are_exact_to_a_bucket_and_old_times_fade) {
  TimeQuantiles times(256);
  EXPECT_EQ(times.At(0.5), Duration::zero());
  for (int ms = 1; ms <= 200; ++ms) times.Add(std::chrono::milliseconds(ms));
  for (const auto& [q, exact] : {std::pair{0.5, 100ms}, {0.95, 190ms}, {1.0, 200ms}}) {
    EXPECT_GE(times.At(q), exact);
    EXPECT_LE(times.At(q), exact * 1.1);
  }
  for (int i = 0; i < 4096; ++i) times.Add(1s);
  EXPECT_GE(times.At(0.05), 1s);
  times.Add(Duration::max() / 4);
  times.Add(Duration(-1));
  EXPECT_LE(times.count(), 512);
}

}  // namespace
}  // namespace forebay::store
