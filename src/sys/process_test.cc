#include "sys/process.h"

#include <gtest/gtest.h>

#include "testing/temp_folder.h"

namespace forebay::sys {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

const std::atomic<bool> kRunning = false;

TEST(RunProcess, gives_what_the_program_says_and_how_it_ended) {
  auto result = RunProcess({"sh", "-c", "cat; echo said; exit 3"}, seconds(20), 100, kRunning);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->output, "said\n");
  EXPECT_EQ(result->exit_code, 3);
  result = RunProcess({"sh", "-c", "kill -TERM $$"}, seconds(20), 100, kRunning);
  EXPECT_EQ(result->exit_code, 128 + 15);
  EXPECT_EQ(RunProcess({"/no/such/program"}, seconds(20), 100, kRunning).code(), Code::kNotFound);
  EXPECT_EQ(RunProcess({}, seconds(20), 100, kRunning).code(), Code::kInvalidArgument);
}

TEST(RunProcess, kills_what_takes_too_long_says_too_much_or_is_not_wanted_any_more) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(RunProcess({"sleep", "60"}, milliseconds(50), 100, kRunning).code(),
            Code::kDeadlineExceeded);
  EXPECT_EQ(RunProcess({"sh", "-c", "exec >&-; sleep 60"}, milliseconds(50), 100, kRunning).code(),
            Code::kDeadlineExceeded);
  auto endless = RunProcess({"yes", "secret"}, seconds(20), 100, kRunning);
  EXPECT_EQ(endless.code(), Code::kResourceExhausted);
  EXPECT_EQ(endless.status().ToString().find("secret"), std::string::npos);
  const std::atomic<bool> stopped = true;
  EXPECT_EQ(RunProcess({"sleep", "60"}, seconds(60), 100, stopped).code(), Code::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
}

TEST(RunProcess, kills_what_the_program_has_started_too) {
  const testing::TempFolder folder;
  const std::string file = folder / "held";
  const std::string holds = "exec >&-; (flock -x 9; sleep 60) 9>" + file;
  EXPECT_EQ(RunProcess({"sh", "-c", holds}, milliseconds(300), 100, kRunning).code(),
            Code::kDeadlineExceeded);
  // The lock goes with the last process that has the file.
  const auto free = RunProcess({"flock", "-w", "20", file, "true"}, seconds(30), 100, kRunning);
  ASSERT_TRUE(free.ok()) << free.status().ToString();
  EXPECT_EQ(free->exit_code, 0);
}

TEST(SplitCommand, keeps_what_quotes_and_backslashes_keep_together) {
  EXPECT_EQ(*SplitCommand("  a  b\t'c d' \"e \\\" \\f\" g\\ h '' x'y'z "),
            (Words{"a", "b", "c d", "e \" \\f", "g h", "", "xyz"}));
  EXPECT_EQ(*SplitCommand(""), Words{});
  EXPECT_EQ(*SplitCommand("$HOME/*"), Words{"$HOME/*"});
  EXPECT_EQ(SplitCommand("'a").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::sys
