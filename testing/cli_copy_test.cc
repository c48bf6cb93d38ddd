// Copies into what is no regular file, by many at once, and what ends them early.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

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

TEST_F(CliCopyTest, a_time_that_the_store_does_not_tell_is_none) {
  const ScriptedServer server([](const SeenRequest&) {
    return ScriptedReply{
        .bytes = HttpText(200, {},
                          "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>d/k"
                          "</Key><Size>7</Size><ETag>e</ETag></Contents></ListBucketResult>")};
  });
  environment_["AWS_ENDPOINT_URL"] = server.url();
  environment_["FOREBAY_NO_SIGN_REQUEST"] = "1";
  EXPECT_EQ(Run({"ls", "s3://bucket/d/"}).out,
            "                   -              7 s3://bucket/d/k\n");
  EXPECT_THAT(Run({"ls", "s3://bucket/d/", "--json"}).out, HasSubstr("\"modified\":null"));
}

TEST_F(CliCopyTest, a_link_stays_one_and_what_it_leads_to_is_replaced) {
  WriteFile(folder_ / "elsewhere/real", "old");
  fs::create_symlink("elsewhere/real", folder_ / "link");
  fs::create_symlink("link", folder_ / "twice");
  EXPECT_EQ(Run({"cp", folder_ / "from", folder_ / "twice"}).code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "twice"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_FALSE(fs::is_symlink(folder_ / "elsewhere/real"));
  EXPECT_TRUE(ReadFile(folder_ / "elsewhere/real") == body_);
  fs::create_symlink("nowhere/x", folder_ / "dangling");
  const Ran dangling = Run({"cp", folder_ / "from", folder_ / "dangling"});
  EXPECT_NE(dangling.code, 0);
  EXPECT_THAT(dangling.err, HasSubstr("following the link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
}

TEST_F(CliCopyTest, of_a_tree_nothing_goes_through_a_link) {
  WriteFile(folder_ / "tree/a", "new");
  WriteFile(folder_ / "tree/b", "new");
  WriteFile(folder_ / "outside", "old");
  fs::create_directories(folder_ / "to");
  fs::create_symlink(folder_ / "outside", folder_ / "to/a");
  const Ran ran = Run({"cp", "-r", folder_ / "tree", folder_ / "to"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("a is a symbolic link"));
  EXPECT_EQ(ReadFile(folder_ / "outside"), "old");
  EXPECT_TRUE(fs::is_symlink(folder_ / "to/a"));
  EXPECT_EQ(ReadFile(folder_ / "to/b"), "new");
}

TEST_F(CliCopyTest, where_few_files_may_be_open_fewer_are_copied_at_a_time) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "bucket/" + std::to_string(i % 7) + "/" + std::to_string(i);
    WriteFile(folder_ / name, Noise(i % 30 == 0 ? 9'000'000 : 1000));
  }
  ServeFolder(folder_.path(), "1ms");
  const auto run = [&](const std::string& from, const std::string& to) {
    const std::string line = "ulimit -n 64; exec " FOREBAY_PROGRAM " cp -r " + from + " " + to;
    Process process("/bin/sh", {"-c", line}, environment_, folder_ / "few");
    EXPECT_EQ(process.Wait(), 0) << process.err();
    EXPECT_THAT(process.err(), Not(HasSubstr("Too many open files")));
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(to)) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    EXPECT_EQ(files, 300U);
  };
  run(folder_ / "bucket", folder_ / "of-files");
  run("s3://bucket/", folder_ / "of-objects");
}

// An S3 that begins uploads and then says nothing: neither to parts nor to being asked to abort.
TEST_F(CliCopyTest, a_second_signal_ends_an_abort_at_once_and_the_uploads_id_is_known) {
  std::atomic<int> parts = 0;
  std::atomic<int> aborts = 0;
  const ScriptedServer server([&](const SeenRequest& request) {
    if (request.method == "POST") {
      return ScriptedReply{.bytes = HttpText(200, {},
                                             "<InitiateMultipartUploadResult><UploadId>the-upload"
                                             "</UploadId></InitiateMultipartUploadResult>")};
    }
    ++(request.method == "PUT" ? parts : aborts);
    return ScriptedReply{.bytes = "", .then = ScriptedReply::Then::kHang};
  });
  environment_["AWS_ENDPOINT_URL"] = server.url();
  environment_["FOREBAY_NO_SIGN_REQUEST"] = "1";
  const auto copy = Start({"cp", folder_ / "from", "s3://bucket/key"});
  const auto until = [](const std::function<bool()>& what) {
    for (int i = 0; i < 20'000 && !what(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  until([&] { return parts > 0; });
  copy->Kill(SIGINT);
  until([&] { return aborts > 0; });
  EXPECT_THAT(copy->err(), HasSubstr("aborting upload the-upload of s3://bucket/key"));
  // Not so soon that it would count as the same one; the abort has two seconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto start = std::chrono::steady_clock::now();
  copy->Kill(SIGINT);
  EXPECT_EQ(copy->Wait(), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_THAT(copy->err(), Not(HasSubstr("resumes")));  // nothing of it is kept
}

TEST_F(CliCopyTest, keys_cannot_speak_to_a_terminal) {
  const std::string name =
      "a\x1b]0;title\x07\nb\xc2\x9b"
      "1m\xff";
  WriteFile(folder_ / ("bucket/" + name), "x");
  const std::string uri = "file://" + (folder_ / "bucket") + "/" + name;
  EXPECT_THAT(Run({"ls", folder_ / "bucket"}).out, HasSubstr(uri)) << "a pipe gets it as it is";
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal) + ::unlockpt(terminal), 0);
  const std::string path = ::ptsname(terminal);
  const std::string line = "exec " FOREBAY_PROGRAM " ls " + (folder_ / "bucket") + " >" + path;
  // Held open, so that what was written is still there when the program has gone.
  const int held = ::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(Process("/bin/sh", {"-c", line}, environment_, folder_ / "shell").Wait(), 0);
  char text[4096];
  const ssize_t n = ::read(terminal, text, sizeof text);
  ASSERT_GT(n, 0);
  const std::string shown(text, static_cast<size_t>(n));
  EXPECT_THAT(shown, HasSubstr(R"(a\x1b]0;title\x07\nb\xc2\x9b1m\xff)"));
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  ::close(held);
  ::close(terminal);
  const Ran missing = Run({"stat", folder_ / ("bucket/no" + name)});
  EXPECT_THAT(missing.err, HasSubstr(R"(noa\x1b]0;title)"));
  EXPECT_THAT(Run({"ls", "--json", folder_ / "bucket"}).out,
              HasSubstr(R"(a\u001b]0;title\u0007\nb)"));
}

}  // namespace
}  // namespace forebay::testing
