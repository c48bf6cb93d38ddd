#include "sys/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace forebay::sys {
namespace {

using namespace std::chrono_literals;

// Runs `body` on the loop and waits for it.
void OnLoop(EventLoop& loop, Task body) {
  std::promise<void> done;
  loop.Post([&] {
    body();
    done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
}

std::unique_ptr<EventLoop> MakeLoop() {
  auto loop = EventLoop::Make("loop-test");
  EXPECT_TRUE(loop.ok()) << loop.status().ToString();
  return *std::move(loop);
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void Write() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  void Read() const {
    char c = 0;
    EXPECT_EQ(::read(ends[0], &c, 1), 1);
  }
  std::array<int, 2> ends{};
};

TEST(EventLoop, runs_posted_tasks_in_order_on_its_own_thread) {
  auto loop = MakeLoop();
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) {
    loop->Post([&seen, i, &loop] {
      EXPECT_TRUE(loop->InThread());
      seen.push_back(i);
    });
  }
  OnLoop(*loop, [] {});
  EXPECT_FALSE(loop->InThread());
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(EventLoop, runs_each_task_once_when_many_threads_post) {
  auto loop = MakeLoop();
  int ran = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) loop->Post([&ran] { ++ran; });
    });
  }
  for (auto& thread : threads) thread.join();
  OnLoop(*loop, [&] { EXPECT_EQ(ran, 20000); });
}

TEST(EventLoop, timers_run_by_time_and_equal_times_in_the_order_made) {
  auto loop = MakeLoop();
  std::vector<int> seen;
  std::promise<void> done;
  const Time base = loop->Now() + 5ms;
  loop->Post([&] {
    loop->PostAt(base + 2ms, [&] {
      seen.push_back(4);
      done.set_value();
    });
    loop->PostAt(base, [&] { seen.push_back(1); });
    loop->PostAt(base, [&] { seen.push_back(2); });
    loop->PostAt(base + 1ms, [&] {
      EXPECT_GE(loop->Now(), base + 1ms);
      seen.push_back(3);
    });
  });
  ASSERT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(seen, (std::vector{1, 2, 3, 4}));
}

TEST(EventLoop, a_cancelled_timer_never_runs_even_when_it_is_due) {
  bool ran = false;
  Executor::TimerId second = 0;
  auto loop = MakeLoop();
  OnLoop(*loop, [&] {
    loop->PostAt(loop->Now() - 1ms, [&] { loop->CancelTimer(second); });
    second = loop->PostAt(loop->Now(), [&ran] { ran = true; });
    loop->CancelTimer(12345);
    loop->CancelTimer(0);
  });
  std::promise<void> later;
  OnLoop(*loop, [&] { loop->PostAt(loop->Now() + 2ms, [&] { later.set_value(); }); });
  ASSERT_EQ(later.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_FALSE(ran);
}

TEST(EventLoop, a_timer_that_renews_itself_at_once_does_not_starve_posted_tasks) {
  bool stop = false;
  std::function<void()> again;
  auto loop = MakeLoop();
  again = [&] {
    if (!stop) loop->PostAt(loop->Now() - 1s, [&] { again(); });
  };
  OnLoop(*loop, [&] { again(); });
  OnLoop(*loop, [&] { stop = true; });
}

TEST(EventLoop, reports_events_until_unwatched_and_follows_changed_interest) {
  Pipe pipe;
  std::promise<void> first;
  int calls = 0;
  auto loop = MakeLoop();
  OnLoop(*loop, [&] {
    auto status = loop->Watch(pipe.ends[0], EPOLLIN, [&](uint32_t events) {
      EXPECT_TRUE(events & EPOLLIN);
      pipe.Read();
      if (++calls == 1) first.set_value();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
  });
  pipe.Write();
  ASSERT_EQ(first.get_future().wait_for(10s), std::future_status::ready);

  OnLoop(*loop, [&] { EXPECT_TRUE(loop->ChangeWatch(pipe.ends[0], 0).ok()); });
  pipe.Write();
  OnLoop(*loop, [] {});
  OnLoop(*loop, [&] { EXPECT_EQ(calls, 1); });
  OnLoop(*loop, [&] { EXPECT_TRUE(loop->ChangeWatch(pipe.ends[0], EPOLLIN).ok()); });
  OnLoop(*loop, [] {});  // one more round of the loop: the waiting byte has been seen
  OnLoop(*loop, [&] {
    EXPECT_EQ(calls, 2);
    loop->Unwatch(pipe.ends[0]);
    loop->Unwatch(pipe.ends[0]);
  });
  pipe.Write();
  OnLoop(*loop, [] {});
  OnLoop(*loop, [&] { EXPECT_EQ(calls, 2); });
}

TEST(EventLoop, a_watcher_unwatched_in_the_same_round_is_not_called) {
  Pipe a;
  Pipe b;
  a.Write();
  b.Write();
  int calls = 0;
  auto loop = MakeLoop();
  OnLoop(*loop, [&] {
    auto on_events = [&](uint32_t) {
      ++calls;
      loop->Unwatch(a.ends[0]);
      loop->Unwatch(b.ends[0]);
    };
    EXPECT_TRUE(loop->Watch(a.ends[0], EPOLLIN, on_events).ok());
    EXPECT_TRUE(loop->Watch(b.ends[0], EPOLLIN, on_events).ok());
  });
  OnLoop(*loop, [] {});
  OnLoop(*loop, [&] { EXPECT_EQ(calls, 1); });
}

TEST(EventLoop, a_watcher_is_expected_turns_before_it_is_called_unless_it_is_gone_by_then) {
  auto loop = MakeLoop();
  constexpr size_t kPipes = 8;
  constexpr size_t kGone = 6;
  std::array<Pipe, kPipes> pipes;
  std::vector<size_t> called;
  std::vector<std::vector<int>> expected(kPipes);
  std::promise<void> all;
  OnLoop(*loop, [&] {
    for (size_t i = 0; i < kPipes; ++i) {
      const auto on_events = [&, i](uint32_t) {
        pipes[i].Read();
        if (called.empty()) loop->Unwatch(pipes[kGone].ends[0]);
        called.push_back(i);
        if (called.size() == kPipes - 1) all.set_value();
      };
      const auto expect = [&, i](int turns) { expected[i].push_back(turns); };
      ASSERT_TRUE(loop->Watch(pipes[i].ends[0], kReadable, on_events, expect).ok());
    }
    for (const Pipe& pipe : pipes) pipe.Write();  // all are ready in one round
  });
  ASSERT_EQ(all.get_future().wait_for(10s), std::future_status::ready);
  OnLoop(*loop, [] {});
  ASSERT_EQ(called, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 7}));
  EXPECT_LT(expected[0].size(), 3U);  // few are ahead of it
  EXPECT_EQ(expected[5], (std::vector<int>{3, 2, 1}));
  EXPECT_TRUE(expected[kGone].empty());
  EXPECT_EQ(expected[7], (std::vector<int>{3, 2, 1}));
}

TEST(EventLoop, watching_a_bad_descriptor_is_an_error) {
  auto loop = MakeLoop();
  OnLoop(*loop, [&] {
    EXPECT_FALSE(loop->Watch(-1, EPOLLIN, [](uint32_t) {}).ok());
    EXPECT_FALSE(loop->ChangeWatch(0, EPOLLIN).ok());
  });
}

TEST(EventLoop, stop_runs_what_was_posted_and_destroys_the_rest_unrun) {
  auto loop = MakeLoop();
  auto alive = std::make_shared<int>(0);
  bool ran = false;
  loop->Post([&] {
    loop->PostAt(loop->Now() + 1h, [alive] { FAIL(); });
    ran = true;
  });
  loop->Stop();
  loop->Stop();
  EXPECT_TRUE(ran);
  EXPECT_EQ(alive.use_count(), 1);
  loop->Post([alive] { FAIL(); });
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(EventLoop, a_task_destroyed_at_stop_may_post) {
  struct PostsWhenDestroyed {
    EventLoop* loop;
    ~PostsWhenDestroyed() {
      if (loop != nullptr) loop->Post([] { FAIL(); });
    }
  };
  auto loop = MakeLoop();
  auto held = std::make_shared<PostsWhenDestroyed>(loop.get());
  loop->Post([&loop, held = std::move(held)]() mutable {
    loop->PostAt(loop->Now() + 1h, [held = std::move(held)] {});
  });
  loop->Stop();
}

}  // namespace
}  // namespace forebay::sys
