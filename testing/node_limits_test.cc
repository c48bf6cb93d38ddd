// The limits of a node: shared by real processes, whatever becomes of them.
#include "store/node_limits.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "testing/temp_folder.h"

namespace forebay::store {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Time Now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }

// Runs in a process of its own; what it returns is its exit status.
pid_t InChild(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}
int StatusOf(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class NodeLimitsTest : public ::testing::Test {
 protected:
  std::shared_ptr<NodeLimits> Open() { return NodeLimits::OfNode(folder_.path(), "limits"); }
  size_t Files() const {
    const fs::path folder = fs::path(folder_.path()) / "forebay";
    return fs::exists(folder)
               ? static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}))
               : 0;
  }
  testing::TempFolder folder_;
};

TEST_F(NodeLimitsTest, is_one_state_for_all_and_gone_with_the_last) {
  auto a = Open();
  auto b = Open();
  ASSERT_TRUE(a->shared());
  PaceState* of_a = a->PaceFor(77, Now());
  PaceState* of_b = b->PaceFor(77, Now());
  ASSERT_NE(of_a, nullptr);
  ASSERT_NE(of_b, nullptr);
  of_a->rate.store(1234);
  EXPECT_EQ(of_b->rate.load(), 1234);
  EXPECT_NE(a->PaceFor(78, Now()), of_a);
  struct stat info{};
  const fs::path folder = fs::path(folder_.path()) / "forebay";
  for (const auto& entry : fs::directory_iterator(folder)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600);
  }
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  EXPECT_EQ(Files(), 1U);
  a.reset();
  EXPECT_EQ(Files(), 1U);
  EXPECT_EQ(of_b->rate.load(), 1234);
  b.reset();
  EXPECT_EQ(Files(), 0U);
}

TEST_F(NodeLimitsTest, is_of_the_process_alone_where_the_folder_is_not_the_users_own) {
  fs::create_directory(fs::path(folder_.path()) / "forebay");
  fs::permissions(fs::path(folder_.path()) / "forebay", fs::perms(0755));
  auto limits = Open();
  EXPECT_FALSE(limits->shared());
  EXPECT_NE(limits->PaceFor(1, Now()), nullptr);
}

TEST_F(NodeLimitsTest, a_full_table_takes_back_what_nobody_has_used_for_long) {
  auto limits = NodeLimits::OfProcess();
  const Time now = Time{} + 24h;
  uint64_t key = 1;
  while (limits->PaceFor(key, now) != nullptr) ++key;
  EXPECT_GT(key, 100U);
  EXPECT_NE(limits->PaceFor(1, now), nullptr);
  EXPECT_EQ(limits->PaceFor(key, now + 1min), nullptr);
  EXPECT_NE(limits->PaceFor(key, now + 11min), nullptr);
}

TEST_F(NodeLimitsTest, a_bandwidth_holds_over_processes_of_which_some_are_killed) {
  constexpr uint64_t kRate = 200 << 20;
  constexpr uint64_t kPiece = 256 << 10;
  constexpr auto kTime = 1500ms;
  // Each takes as much as it can; what it got comes back through a pipe.
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const auto take = [&](Duration time) {
    auto limits = Open();
    if (!limits->shared()) return 1;
    Bandwidth bandwidth(*limits->BandwidthFor(1, Now()), kRate);
    const Time end = Now() + time;
    while (Now() < end) {
      if (bandwidth.TryTake(kPiece, Now())) {
        if (::write(pipe_fds[1], "x", 1) != 1) return 2;
      } else {
        std::this_thread::sleep_until(std::min(bandwidth.ReadyAt(Now()), end));
      }
    }
    return 0;
  };
  auto keeps_it = Open();
  std::vector<pid_t> stay;
  std::vector<pid_t> killed;
  for (int i = 0; i < 4; ++i) stay.push_back(InChild([&] { return take(kTime); }));
  for (int i = 0; i < 4; ++i) killed.push_back(InChild([&] { return take(1h); }));
  ::close(pipe_fds[1]);
  const Time began = Now();
  uint64_t moved = 0;
  std::vector<char> buffer(4096);
  bool struck = false;
  for (ssize_t n = 0; (n = ::read(pipe_fds[0], buffer.data(), buffer.size())) > 0;) {
    moved += static_cast<uint64_t>(n) * kPiece;
    if (!struck && Now() - began > 500ms) {
      struck = true;
      for (const pid_t child : killed) ::kill(child, SIGKILL);
    }
  }
  const double seconds = std::chrono::duration<double>(kTime).count();
  for (const pid_t child : killed) StatusOf(child);
  for (const pid_t child : stay) EXPECT_EQ(StatusOf(child), 0);
  ::close(pipe_fds[0]);
  // A start that was late on a busy machine may only mean less.
  EXPECT_LE(static_cast<double>(moved) / (seconds * kRate), 1.10);
  EXPECT_GE(static_cast<double>(moved) / (seconds * kRate), 0.85);
  keeps_it.reset();
  EXPECT_EQ(Files(), 0U);
}

TEST_F(NodeLimitsTest, what_one_process_learns_of_a_limit_holds_for_the_others) {
  auto limits = Open();
  const pid_t child = InChild([&] {
    auto its = Open();
    Pace pace(*its->PaceFor(5, Now()));
    // It is refused nearly all it asks for.
    for (int i = 0; i < 200; ++i) {
      const Time now = Now();
      if (const uint64_t phase = pace.TryStart(now); phase != 0) {
        pace.OnAnswer(phase, i % 4 != 0, now);
      }
      std::this_thread::sleep_for(4ms);
    }
    return pace.paced() ? 0 : 1;
  });
  EXPECT_EQ(StatusOf(child), 0);
  Pace pace(*limits->PaceFor(5, Now()));
  EXPECT_TRUE(pace.paced());
  int at_once = 0;
  for (int i = 0; i < 100; ++i) at_once += pace.TryStart(Now()) != 0 ? 1 : 0;
  EXPECT_LT(at_once, 20);
}

}  // namespace
}  // namespace forebay::store
