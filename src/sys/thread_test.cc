#include "sys/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <future>
#include <string>

namespace forebay::sys {
namespace {

using namespace std::chrono_literals;

TEST(NamedThread, bears_its_name_and_blocks_signals) {
  std::string name;
  bool blocked = false;
  auto thread = NamedThread::Make("a-rather-long-thread-name", [&] {
    std::array<char, 32> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1;
  });
  ASSERT_TRUE(thread.ok());
  (*thread)->Join();
  (*thread)->Join();
  EXPECT_EQ(name, "a-rather-long-t");
  EXPECT_TRUE(blocked);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

TEST(WorkPool, runs_every_task_before_stop_returns) {
  std::atomic<int> ran = 0;
  auto pool = WorkPool::Make({.name = "work", .threads = 3, .queue_limit = 4});
  ASSERT_TRUE(pool.ok());
  for (int i = 0; i < 500; ++i) EXPECT_TRUE((*pool)->Submit([&] { ++ran; }).ok());
  (*pool)->Stop();
  EXPECT_EQ(ran, 500);
  EXPECT_EQ((*pool)->Submit([] {}).code(), Code::kCancelled);
  Task task = [] {};
  EXPECT_FALSE((*pool)->TrySubmit(task));
}

TEST(WorkPool, refuses_and_times_out_when_the_queue_is_full) {
  auto pool = WorkPool::Make({.name = "work", .threads = 1, .queue_limit = 1});
  ASSERT_TRUE(pool.ok());
  std::promise<void> started;
  std::promise<void> release;
  ASSERT_TRUE((*pool)
                  ->Submit([&] {
                    started.set_value();
                    release.get_future().wait();
                  })
                  .ok());
  started.get_future().wait();
  std::atomic<int> ran = 0;
  Task queued = [&] { ++ran; };
  EXPECT_TRUE((*pool)->TrySubmit(queued));
  Task refused = [&] { ran += 10; };
  EXPECT_FALSE((*pool)->TrySubmit(refused));
  EXPECT_TRUE(refused);  // still the caller's
  const Time soon = std::chrono::steady_clock::now() + 2ms;
  EXPECT_EQ((*pool)->Submit([&] { ran += 100; }, soon).code(), Code::kDeadlineExceeded);
  release.set_value();
  (*pool)->Stop();
  EXPECT_EQ(ran, 1);
}

TEST(WorkPool, without_threads_or_queue_is_refused) {
  EXPECT_EQ(WorkPool::Make({.threads = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(WorkPool::Make({.queue_limit = 0}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::sys
