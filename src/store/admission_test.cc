// Admission, its cap on what flies, its pace and its bandwidth, in virtual time.
#include "store/admission.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/random.h"
#include "testing/manual_executor.h"

namespace forebay::store {
namespace {

using namespace std::chrono_literals;
using forebay::testing::ManualExecutor;

class Entry : public Admission::Entry {
 public:
  Entry(int number, std::vector<int>& began) : number_(number), began_(began) {}
  void Begin() override { began_.push_back(number_); }
  void Refuse(Status status) override { refused = std::move(status); }
  Status refused;

 private:
  int number_;
  std::vector<int>& began_;
};

class AdmissionTest : public ::testing::Test {
 protected:
  Entry& Make(Priority priority, Time deadline = kNever, uint64_t bytes = 0, uint64_t prefix = 1) {
    entries_.emplace_back(static_cast<int>(entries_.size()), order_);
    Entry& entry = entries_.back();
    entry.priority = priority;
    entry.deadline = deadline;
    entry.bytes = bytes;
    entry.prefix = prefix;
    return entry;
  }
  Entry& Enter(Admission& admission, Priority priority, Time deadline = kNever,
               uint64_t bytes = 0) {
    Entry& entry = Make(priority, deadline, bytes);
    Status why;
    EXPECT_TRUE(admission.Enter(entry, &why)) << why.ToString();
    return entry;
  }

  ManualExecutor executor_;
  std::vector<int> order_;
  std::deque<Entry> entries_;
};

TEST_F(AdmissionTest, serves_the_waiting_by_priority_then_by_deadline_then_in_order) {
  Admission admission(executor_, {.in_flight = 3}, nullptr);
  const Time now = executor_.Now();
  Entry& running = Enter(admission, Priority::kFar);    // 0
  Enter(admission, Priority::kBulk, now + 1s);          // 1
  Enter(admission, Priority::kFar, now + 9s);           // 2
  Enter(admission, Priority::kFar, now + 5s);           // 3
  Enter(admission, Priority::kFar, now + 5s);           // 4
  Enter(admission, Priority::kSoon);                    // 5
  Entry& promoted = Enter(admission, Priority::kBulk);  // 6
  EXPECT_EQ(order_, std::vector<int>{0});
  admission.Promote(promoted);
  EXPECT_EQ(order_, (std::vector<int>{0, 6}));  // demand has two places of its own
  admission.Leave(promoted, 0, false);
  admission.Leave(running, 0, false);
  for (const int next : {5, 3, 4, 2, 1}) {
    ASSERT_EQ(order_.back(), next);
    admission.Leave(entries_[static_cast<size_t>(next)], 0, false);
  }
  EXPECT_EQ(admission.in_flight(), 0U);
  EXPECT_EQ(admission.waiting(), 0U);
  executor_.RunAll();
}

TEST_F(AdmissionTest, a_late_request_is_refused_and_a_dropped_one_forgotten) {
  Admission admission(executor_, {.in_flight = 3, .queue_limit = 2}, nullptr);
  Entry& running = Enter(admission, Priority::kFar);
  Entry& late = Enter(admission, Priority::kFar, executor_.Now() + 1s);
  Entry& dropped = Enter(admission, Priority::kFar);
  Status why;
  Entry& third = Make(Priority::kFar);
  EXPECT_FALSE(admission.Enter(third, &why));
  EXPECT_EQ(why.code(), Code::kResourceExhausted);
  executor_.Advance(1s);
  EXPECT_EQ(late.refused.code(), Code::kDeadlineExceeded);
  admission.Drop(dropped);
  EXPECT_EQ(admission.waiting(), 0U);
  admission.Leave(running, 0, false);
  EXPECT_EQ(order_, std::vector<int>{0});
}

TEST_F(AdmissionTest, starts_slowly_and_again_after_a_pause) {
  Admission admission(executor_, {.in_flight = 256, .in_flight_first = 8}, nullptr);
  for (int i = 0; i < 4000; ++i) Enter(admission, Priority::kDemand);
  EXPECT_EQ(admission.in_flight(), 8U);
  // Each takes 100 ms, whatever flies beside it: more in flight is more received.
  size_t ended = 0;
  const auto round = [&] {
    executor_.Advance(100ms);
    const size_t began = order_.size();
    while (ended < began) admission.Leave(entries_[ended++], 1 << 20, false);
  };
  for (int i = 0; i < 30; ++i) round();
  EXPECT_EQ(admission.cap(), 256U);
  while (admission.in_flight() > 0) round();
  executor_.Advance(1min);
  for (int i = 0; i < 100; ++i) Enter(admission, Priority::kDemand);
  round();
  EXPECT_EQ(admission.cap(), 8U);
}

// A server at which `useful` requests in flight are the most that helps, and more harm.
class Server {
 public:
  Server(ManualExecutor& executor, size_t useful, double harm)
      : executor_(executor), useful_(useful), harm_(harm) {}
  double Rate(size_t flying) const {
    const auto n = static_cast<double>(flying);
    const auto k = static_cast<double>(useful_);
    return n <= k ? n / k : 1 / (1 + harm_ * (n - k) / k);
  }
  // The steady state of so many workers asking for 1 MiB each, with an admission in between.
  double Throughput(size_t asked, LimitOptions options) {
    Admission admission(executor_, options, nullptr);
    std::vector<int> order;
    std::deque<Entry> entries;
    Random random(1);
    const auto enter = [&] {
      entries.emplace_back(static_cast<int>(entries.size()), order);
      Status why;
      EXPECT_TRUE(admission.Enter(entries.back(), &why));
    };
    for (size_t i = 0; i < asked; ++i) enter();
    size_t began = 0;
    double moved = 0;
    Time from{};
    std::vector<int> flying;
    const Time start = executor_.Now();
    while (executor_.Now() < start + 60s) {
      for (; began < order.size(); ++began) flying.push_back(order[began]);
      // Which of them ends, and when, as if each got an equal share.
      const double per_s = 1000 * Rate(flying.size());
      executor_.Advance(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>((0.9 + 0.2 * random.NextDouble()) / per_s)));
      const size_t pick = random.NextBelow(flying.size());
      Entry& done = entries[static_cast<size_t>(flying[pick])];
      flying[pick] = flying.back();
      flying.pop_back();
      if (executor_.Now() > start + 10s && from == Time{}) from = executor_.Now();
      if (from != Time{}) moved += 1;
      admission.Leave(done, 1 << 20, false);
      enter();
    }
    const double per_s = moved / std::chrono::duration<double>(executor_.Now() - from).count();
    for (Entry& entry : entries) admission.Drop(entry);
    return per_s / 1000;
  }

 private:
  ManualExecutor& executor_;
  size_t useful_;
  double harm_;
};

TEST_F(AdmissionTest, asking_for_sixteen_times_the_useful_number_keeps_the_throughput) {
  for (const size_t useful : {4U, 16U, 64U}) {
    for (const double harm : {0.0, 0.05, 0.2}) {
      Server server(executor_, useful, harm);
      EXPECT_GE(server.Throughput(16 * useful, {.in_flight = 1024}), 0.95)
          << useful << " useful, harm " << harm;
    }
  }
}

TEST_F(AdmissionTest, a_bandwidth_is_kept_and_used_whoever_asks) {
  constexpr uint64_t kRate = 100 << 20;
  auto node = NodeLimits::OfProcess();
  Admission a(executor_, {.bandwidth = kRate}, node);
  Admission b(executor_, {.bandwidth = kRate}, node);
  uint64_t moved = 0;
  std::vector<int> order;
  std::deque<Entry> entries;
  const auto enter = [&](Admission& admission, uint64_t bytes) {
    entries.emplace_back(static_cast<int>(entries.size()), order);
    entries.back().bytes = bytes;
    Status why;
    EXPECT_TRUE(admission.Enter(entries.back(), &why));
  };
  for (int i = 0; i < 64; ++i) enter(i % 2 == 0 ? a : b, i % 3 == 0 ? 8 << 20 : 300 << 10);
  size_t ended = 0;
  executor_.Advance(1s);
  for (int ms = 0; ms < 30'000; ms += 5) {
    executor_.Advance(5ms);
    const size_t began = order.size();
    for (; ended < began; ++ended) {
      Entry& entry = entries[static_cast<size_t>(order[ended])];
      Admission& of = order[ended] % 2 == 0 ? a : b;
      moved += entry.bytes;
      of.Leave(entry, entry.bytes, false);
      enter(entries.size() % 2 == 0 ? a : b, ended % 3 == 0 ? 8 << 20 : 300 << 10);
    }
  }
  const double share = static_cast<double>(moved) / (30.0 * kRate);
  EXPECT_GT(share, 0.95);
  EXPECT_LT(share, 1.05);
  for (Entry& entry : entries) {
    a.Drop(entry);
    b.Drop(entry);
  }
}

// From the first request on, also in a short run, whether its requests are long or short.
TEST_F(AdmissionTest, a_bandwidth_is_kept_from_its_first_second_on) {
  constexpr uint64_t kRate = 10 << 20;
  struct Load {
    std::vector<uint64_t> sizes;  // in turn
    int processes;
  };
  const Load loads[] = {{{2 << 20}, 1},  {{2 << 20}, 4},          {{1 << 10, 2 << 20}, 2},
                        {{64 << 10}, 3}, {{4 << 10, 1 << 20}, 1}, {{1 << 20, 256 << 10}, 2}};
  for (const Load& load : loads) {
    auto node = NodeLimits::OfProcess();
    std::vector<std::unique_ptr<Admission>> processes;
    for (int i = 0; i < load.processes; ++i) {
      processes.push_back(
          std::make_unique<Admission>(executor_, LimitOptions{.bandwidth = kRate}, node));
    }
    std::vector<int> order;
    std::deque<Entry> entries;
    const auto enter = [&] {
      const size_t number = entries.size();
      Entry& entry = entries.emplace_back(static_cast<int>(number), order);
      entry.bytes = load.sizes[number / processes.size() % load.sizes.size()];
      Status why;
      EXPECT_TRUE(processes[number % processes.size()]->Enter(entry, &why));
    };
    for (size_t i = 0; i < 8 * processes.size(); ++i) enter();
    uint64_t moved = 0;
    size_t ended = 0;
    for (int ms = 0; ms <= 60'000; ms += 2) {
      executor_.Advance(2ms);
      for (const size_t began = order.size(); ended < began; ++ended) {
        Entry& entry = entries[static_cast<size_t>(order[ended])];
        moved += entry.bytes;
        processes[static_cast<size_t>(order[ended]) % processes.size()]->Leave(entry, entry.bytes,
                                                                               false);
        enter();
      }
      if (ms != 5'000 && ms != 25'000 && ms != 60'000) continue;
      const double share = static_cast<double>(moved) / (ms * 1e-3 * kRate);
      EXPECT_GT(share, 0.95) << load.processes << " of " << load.sizes[0] << " at " << ms;
      EXPECT_LT(share, 1.02) << load.processes << " of " << load.sizes[0] << " at " << ms;
    }
    for (Entry& entry : entries) {
      for (auto& process : processes) process->Drop(entry);
    }
    executor_.Advance(10min);
  }
}

// One that asks for no more than nearly the rate gets it, one request after the other.
TEST_F(AdmissionTest, a_bandwidth_does_not_slow_down_who_asks_for_less) {
  constexpr uint64_t kRate = 10 << 20;
  constexpr uint64_t kBytes = 4 << 20;  // 400 ms
  for (const double share : {0.3, 0.5, 0.7, 0.9}) {
    BandwidthState state{};
    Bandwidth bandwidth(state, kRate);
    Time now = Time{} + 1h;
    const Time start = now;
    const auto period = std::chrono::duration_cast<Duration>(400ms / share);
    for (int i = 0; i < 100; ++i) {
      const Time wanted = now;
      while (!bandwidth.TryTake(kBytes, now)) now = std::max(bandwidth.ReadyAt(now), now + 1ms);
      if (i > 3) {
        EXPECT_LT(now - wanted, 1ms) << share;
      }
      now += period;
    }
    EXPECT_LT(now - start, 103 * period) << share;
  }
}

// One rate, asked for by `askers` that share the state, under a server's own limit.
struct Paced {
  double served_per_s = 0;
  double refused_share = 0;
};
class PaceTest : public ::testing::Test {
 protected:
  // All ask as soon as they may; `limit_per_s` 0: none; each answer takes 100 ms.
  Paced Run(Duration time, double limit_per_s, double noise, int askers = 1) {
    std::vector<Pace> paces(static_cast<size_t>(askers), Pace(state_));
    uint64_t served = 0;
    uint64_t refused = 0;
    struct Answer {
      Time at;
      uint64_t phase;
      bool refused;
    };
    std::deque<Answer> answers;
    const Time end = now_ + time;
    constexpr int kAskedMost = 2;
    for (; now_ < end; now_ += 1ms) {
      tokens_ = std::min(10.0, tokens_ + limit_per_s * 0.001);
      while (!answers.empty() && answers.front().at <= now_) {
        paces[0].OnAnswer(answers.front().phase, answers.front().refused, now_);
        answers.pop_front();
      }
      for (int i = 0; i < kAskedMost; ++i) {
        Pace& pace = paces[static_cast<size_t>(i % askers)];
        const uint64_t phase = pace.TryStart(now_);
        if (phase == 0) continue;
        bool no = random_.NextDouble() < noise;
        if (limit_per_s > 0 && !no) {
          no = tokens_ < 1;
          if (!no) tokens_ -= 1;
        }
        ++(no ? refused : served);
        answers.push_back({now_ + 100ms, phase, no});
      }
    }
    const double seconds = std::chrono::duration<double>(time).count();
    const auto all = static_cast<double>(served + refused);
    return {static_cast<double>(served) / seconds,
            all > 0 ? static_cast<double>(refused) / all : 0};
  }

  PaceState state_{};
  Random random_{7};
  double tokens_ = 0;
  Time now_ = Time{} + 1h;
};

TEST_F(PaceTest, a_few_random_503s_slow_nothing_down) {
  const Paced paced = Run(2min, 0, 0.01);
  EXPECT_GT(paced.served_per_s, 1950);
  EXPECT_FALSE(Pace(state_).paced());
}

TEST_F(PaceTest, finds_a_limit_uses_it_and_finds_a_higher_one) {
  for (const double limit : {300.0, 900.0, 100.0}) {
    Run(1min, limit, 0);
    const Paced paced = Run(1min, limit, 0);
    EXPECT_GE(paced.served_per_s, 0.9 * limit) << limit;
    EXPECT_LT(paced.refused_share, 0.01) << limit;
  }
  Run(2min, 0, 0);
  EXPECT_GE(Run(10s, 0, 0).served_per_s, 1900);  // the limit is gone: so is the pace
}

TEST_F(PaceTest, random_503s_do_not_push_a_pace_down) {
  Run(10s, 300, 0);
  ASSERT_TRUE(Pace(state_).paced());
  Run(2min, 0, 0.01);
  EXPECT_GT(Run(10s, 0, 0.01).served_per_s, 1500);
}

// Few requests, of which by chance enough are refused at once, and one more while that is looked
// into: what asks for hardly more than it was served is not held at that for long.
TEST_F(PaceTest, refusals_by_chance_at_a_low_rate_are_soon_forgotten) {
  Pace pace(state_);
  const Time began = now_;
  Time behind = now_;
  double owed = 0;
  int refuse = 4;
  std::deque<std::pair<Time, uint64_t>> answers;
  for (; now_ < began + 1min; now_ += 1ms) {
    owed += 0.016;
    if (owed > 3) behind = now_;
    for (; !answers.empty() && answers.front().first <= now_; answers.pop_front()) {
      const bool refused = refuse > 0 && now_ > began + 2200ms;
      refuse -= refused ? 1 : 0;
      pace.OnAnswer(answers.front().second, refused, now_);
    }
    if (now_ == began + 3500ms) refuse = 1;
    if (owed < 1) continue;
    const uint64_t phase = pace.TryStart(now_);
    if (phase == 0) continue;
    owed -= 1;
    answers.emplace_back(now_ + 130ms, phase);
  }
  EXPECT_EQ(refuse, 0);
  EXPECT_GT(behind, began + 2s);
  EXPECT_LT(behind, began + 15s);
}

TEST_F(PaceTest, those_who_share_the_state_share_the_rate) {
  Run(1min, 300, 0, 8);
  const Paced paced = Run(1min, 300, 0, 8);
  EXPECT_GE(paced.served_per_s, 0.9 * 300);
  EXPECT_LT(paced.refused_share, 0.01);
}

TEST_F(PaceTest, what_another_clock_or_a_dead_process_left_holds_nobody_up) {
  Run(10s, 300, 0);
  state_.next_ns.store((now_ + 24h).time_since_epoch().count());
  EXPECT_LE(Pace(state_).ReadyAt(now_), now_);
  state_.concluded.store(~uint64_t{0} / 2);
  // Requests that began and were never answered.
  for (auto& phase : state_.phases) phase.started.fetch_add(1000);
  EXPECT_GE(Run(1min, 300, 0).served_per_s, 0.8 * 300);
  now_ += 2min;  // long unused: forgotten
  EXPECT_NE(Pace(state_).TryStart(now_), 0U);
  EXPECT_FALSE(Pace(state_).paced());
}

}  // namespace
}  // namespace forebay::store
