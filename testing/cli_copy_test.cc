// Copies into what is no regular file, by many at once, and what ends them early.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/cli_process.h"
#include "testing/scripted_server.h"

namespace forebay::testing {
namespace {

class CliCopyTest : public CliTest {
 protected:
  void SetUp() override {
    body_ = Noise(20'000'000);
    WriteFile(folder_ / "from", body_);
  }
  std::string body_;
};

TEST_F(CliCopyTest, a_copy_into_a_device_writes_to_it_and_leaves_it_there) {
  // Links, so that a copy that replaces its target does no harm to the machine.
  fs::create_symlink("/dev/null", folder_ / "null");
  fs::create_symlink("/dev/full", folder_ / "full");
  const Ran null = Run({"cp", folder_ / "from", folder_ / "null", "--json"});
  EXPECT_EQ(null.code, 0) << null.err;
  EXPECT_EQ(NumberOf(null.out, "bytes_copied"), 20'000'000);
  EXPECT_TRUE(fs::is_character_file(folder_ / "null"));
  const Ran full = Run({"cp", folder_ / "from", folder_ / "full"});
  EXPECT_EQ(full.code, 255);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
  EXPECT_TRUE(fs::is_character_file(folder_ / "full"));
  EXPECT_FALSE(fs::exists(folder_ / "null.forebay-part"));
}

TEST_F(CliCopyTest, a_copy_into_a_fifo_goes_through_it_in_order) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  const auto copy = Start({"cp", folder_ / "from", folder_ / "fifo"});
  EXPECT_TRUE(ReadFile(folder_ / "fifo") == body_);
  EXPECT_EQ(copy->Wait(), 0) << copy->err();
  EXPECT_TRUE(fs::is_fifo(folder_ / "fifo"));
}

TEST_F(CliCopyTest, a_signal_ends_a_copy_that_waits_for_the_reader_of_a_fifo) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  const auto copy = Start({"cp", folder_ / "from", folder_ / "fifo"});
  const fs::path threads = "/proc/" + std::to_string(copy->pid()) + "/task";
  const auto count = [&] { return std::distance(fs::directory_iterator(threads), {}); };
  for (int i = 0; i < 5000 && count() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  copy->Kill(SIGINT);
  EXPECT_EQ(copy->Wait(), 130);
}

TEST_F(CliCopyTest, what_is_open_already_is_written_where_it_stands) {
  for (const std::string target : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const Ran ran = Run({"cp", folder_ / "from", target});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(ran.out == body_) << target;
  }
  EXPECT_NE(Run({"cp", folder_ / "from", "/dev/fd/987"}).code, 0);
}

TEST_F(CliCopyTest, of_a_tree_nothing_replaces_a_fifo) {
  WriteFile(folder_ / "tree/fifo", "x");
  fs::create_directories(folder_ / "to");
  ASSERT_EQ(::mkfifo((folder_ / "to/fifo").c_str(), 0600), 0);
  const Ran ran = Run({"cp", "-r", folder_ / "tree", folder_ / "to"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("fifo is no regular file"));
  EXPECT_TRUE(fs::is_fifo(folder_ / "to/fifo"));
}

TEST_F(CliCopyTest, many_that_copy_one_object_to_one_place_all_succeed) {
  WriteFile(folder_ / "small", Noise(100'000));
  for (int round = 0; round < 4; ++round) {
    fs::remove(folder_ / "to");
    std::vector<std::unique_ptr<Process>> copies;
    for (int i = 0; i < 8; ++i) copies.push_back(Start({"cp", folder_ / "small", folder_ / "to"}));
    for (const auto& copy : copies) EXPECT_EQ(copy->Wait(), 0) << copy->err();
    EXPECT_TRUE(ReadFile(folder_ / "to") == Noise(100'000));
  }
}

TEST_F(CliCopyTest, a_signal_that_comes_twice_at_once_is_one) {
  ServeFolder(folder_.path(), "20s");
  WriteFile(folder_ / "bucket/x", "x");
  const auto copy = Start({"cp", "s3://bucket/x", folder_ / "x"});
  copy->WaitForSocket();
  copy->Kill(SIGTERM);
  copy->Kill(SIGINT);  // another one, so that neither is merged into the other on its way
  const int code = copy->Wait();
  EXPECT_TRUE(code == 128 + SIGTERM || code == 128 + SIGINT) << code;
  EXPECT_THAT(copy->err(), HasSubstr("the same command resumes the copy"));
}

TEST_F(CliCopyTest, output_that_cannot_be_written_fails_the_command) {
  const auto to_full = [&](const std::string& words) {
    const std::string line = "exec " FOREBAY_PROGRAM " " + words + " >/dev/full";
    return Process("/bin/sh", {"-c", line}, environment_, folder_ / "shell").Wait();
  };
  EXPECT_EQ(to_full("--json cp " + folder_ / "from " + folder_ / "to"), 255);
  EXPECT_EQ(to_full("--help"), 255);
  EXPECT_EQ(to_full("cp --help"), 255);
  EXPECT_EQ(to_full("--version"), 255);
  EXPECT_THAT(Run({"--version"}).out, HasSubstr("forebay"));
}

TEST_F(CliCopyTest, a_target_that_may_not_be_written_is_the_environments_fault) {
  const Ran ran = Run({"cp", folder_ / "from", "/sys/kernel/forebay-test"});
  EXPECT_EQ(ran.code, 253) << ran.err;
}

TEST_F(CliCopyTest, answers_of_a_store_have_the_same_codes_as_of_files) {
  WriteFile(folder_ / "bucket/small", "0123456789");
  ServeFolder(folder_.path(), "0ms");
  EXPECT_EQ(Run({"cat", "--range", "10-", "s3://bucket/small"}).code, 254);
  const Ran nothing = Run({"-q", "ls", "s3://bucket/nothing/"});
  EXPECT_EQ(nothing.code, 254);
  EXPECT_THAT(nothing.err, HasSubstr("nothing is at s3://bucket/nothing/"));
}

TEST_F(CliCopyTest, a_listing_whose_tokens_go_round_is_refused) {
  const ScriptedServer server([](const SeenRequest& request) {
    const bool b = request.target.contains("continuation-token=B");
    return ScriptedReply{
        .bytes = HttpText(200, {},
                          std::string("<ListBucketResult><IsTruncated>true</IsTruncated>") +
                              "<NextContinuationToken>" + (b ? "A" : "B") +
                              "</NextContinuationToken></ListBucketResult>")};
  });
  environment_["AWS_ENDPOINT_URL"] = server.url();
  environment_["FOREBAY_NO_SIGN_REQUEST"] = "1";
  const Ran ran = Run({"ls", "s3://bucket/d/"});
  EXPECT_EQ(ran.code, 254);
  EXPECT_THAT(ran.err, HasSubstr("repeats a continuation token"));
}

}  // namespace
}  // namespace forebay::testing
