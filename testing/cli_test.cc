// The real program against folders, the fault server and a real S3 server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/cli_process.h"
#include "testing/s3_server.h"

namespace forebay::testing {
namespace {

TEST_F(CliTest, lists_shows_and_prints_files) {
  WriteFile(folder_ / "d/a b", "0123456789");
  WriteFile(folder_ / "d/deep/x", "x");
  WriteFile(folder_ / "d/.forebay/catalog.fbc", "ours");
  const Ran flat = Run({"ls", folder_ / "d"});
  EXPECT_EQ(flat.code, 0) << flat.err;
  EXPECT_THAT(flat.out, HasSubstr("PRE file://" + folder_.path() + "/d/deep/\n"));
  EXPECT_THAT(flat.out, HasSubstr("10 file://" + folder_.path() + "/d/a b\n"));
  EXPECT_THAT(flat.out, Not(HasSubstr(".forebay")));
  const Ran all = Run({"ls", "-r", folder_ / "d", "--json"});
  EXPECT_THAT(all.out, HasSubstr("{\"schema\":\"forebay.ls/1\",\"uri\":\"file://" + folder_.path() +
                                 "/d/deep/x\",\"type\":\"object\",\"size\":1,"));
  EXPECT_THAT(Run({"--json", "stat", folder_ / "d/a b"}).out,
              HasSubstr("{\"schema\":\"forebay.stat/1\""));
  EXPECT_EQ(Run({"cat", folder_ / "d/a b"}).out, "0123456789");
}

TEST_F(CliTest, a_range_is_inclusive_as_in_http) {
  WriteFile(folder_ / "x", "0123456789");
  const std::map<std::string, std::string> want = {{"2-4", "234"},  {"0-0", "0"},
                                                   {"8-", "89"},    {"-3", "789"},
                                                   {"8-100", "89"}, {"-100", "0123456789"}};
  for (const auto& [range, text] : want) {
    EXPECT_EQ(Run({"cat", "--range=" + range, folder_ / "x"}).out, text) << range;
  }
  EXPECT_EQ(Run({"cat", "--range", "10-12", folder_ / "x"}).code, 254);
  for (const std::string bad : {"4-2", "x", "1", "-", "-0", "1-2,4-5"}) {
    EXPECT_EQ(Run({"cat", "--range=" + bad, folder_ / "x"}).code, 252) << bad;
  }
}

TEST_F(CliTest, exit_codes_say_whose_fault_it_was) {
  WriteFile(folder_ / "x", "x");
  EXPECT_EQ(Run({"stat", folder_ / "none"}).code, 254);
  EXPECT_EQ(Run({"stat", folder_ / "x", folder_ / "none"}).code, 1);
  EXPECT_EQ(Run({}).code, 252);
  EXPECT_EQ(Run({"frobnicate"}).code, 252);
  EXPECT_EQ(Run({"cat"}).code, 252);
  EXPECT_EQ(Run({"ls", "--no-such-flag", "x"}).code, 252);
  EXPECT_EQ(Run({"cat", "gs://bucket/x"}).code, 252);
  EXPECT_EQ(Run({"ls", "--config", folder_ / "none", folder_.path()}).code, 253);
  const Ran no_credentials = Run({"ls", "s3://bucket/", "--endpoint-url", "http://127.0.0.1:9"});
  EXPECT_EQ(no_credentials.code, 253) << no_credentials.err;
  EXPECT_THAT(no_credentials.err, HasSubstr("AWS_ACCESS_KEY_ID"));
  environment_["FOREBAY_JSON"] = "perhaps";
  EXPECT_EQ(Run({"ls", folder_.path()}).code, 253);
  environment_.erase("FOREBAY_JSON");
  EXPECT_EQ(Run({"--version"}).code, 0);
  EXPECT_EQ(Run({"cp", "--help"}).code, 0);
}

TEST_F(CliTest, what_is_no_command_is_named_with_those_there_are) {
  const Ran bogus = Run({"bogus", "x"});
  EXPECT_EQ(bogus.code, 252);
  EXPECT_THAT(bogus.err, AllOf(HasSubstr("\"bogus\" is no command"), HasSubstr("frames")));
  EXPECT_THAT(Run({}).err, AllOf(HasSubstr("a command is missing"), HasSubstr("frames")));
  EXPECT_THAT(Run({"--bogus"}).err, HasSubstr("\"--bogus\" is no option"));
  EXPECT_THAT(Run({"ls", "--bogus", "x"}).err, HasSubstr("--bogus"));
}

TEST_F(CliTest, an_option_without_a_value_is_refused) {
  WriteFile(folder_ / "x", "x");
  const std::vector<Args> empty = {{"cat", "--range", "", folder_ / "x"},
                                   {"frames", "--numbers", "", kVideo},
                                   {"frames", "--times", "", kVideo},
                                   {"frames", "-o", "", kVideo},
                                   {"index", "--out", "", folder_.path()},
                                   {"stat", "--profile", "", folder_ / "x"},
                                   {"stat", "--endpoint-url=", folder_ / "x"},
                                   {"stat", "--config", "", folder_ / "x"},
                                   {"stat", ""},
                                   {"ls", ""},
                                   {"cp", folder_ / "x", ""}};
  for (const Args& args : empty) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 252) << ::testing::PrintToString(args) << ran.err;
    EXPECT_EQ(ran.out, "") << ::testing::PrintToString(args);
  }
}

TEST_F(CliTest, settings_and_endpoints_that_fail_are_the_environments_fault) {
  environment_["AWS_ACCESS_KEY_ID"] = "id";
  environment_["AWS_SECRET_ACCESS_KEY"] = "secret";
  environment_["AWS_MAX_ATTEMPTS"] = "1";
  const auto stat = [&](const std::string& flag, const std::string& value) {
    const Ran ran = Run({"stat", "s3://bucket/x", flag, value});
    EXPECT_THAT(ran.err, Not(HasSubstr("secret")));
    return ran.code;
  };
  EXPECT_EQ(stat("--endpoint-url", "http://127.0.0.1:9"), 253);  // nobody listens
  EXPECT_EQ(stat("--endpoint-url", "https://127.0.0.1:9"), 253);
  EXPECT_EQ(stat("--endpoint-url", "http://name.invalid"), 253);
  EXPECT_EQ(stat("--endpoint-url", "ftp://host"), 253);
  EXPECT_EQ(stat("--ca-bundle", folder_ / "none"), 253);
  EXPECT_EQ(stat("--profile", "none"), 253);
  EXPECT_EQ(stat("--region", "no region"), 253);
  for (const Args& args : {Args{"frames", "s3://bucket/x"}, Args{"inspect", "s3://bucket/x"},
                           Args{"index", "s3://bucket/x/"}, Args{"ls", "s3://bucket/"}}) {
    for (const std::string endpoint : {"http://127.0.0.1:9", "ftp://host"}) {
      Args all = args;
      all.insert(all.end(), {"--endpoint-url", endpoint});
      EXPECT_EQ(Run(all).code, 253) << args[0] << " " << endpoint;
    }
  }
  environment_["AWS_ENDPOINT_URL"] = "nonsense";
  EXPECT_EQ(Run({"stat", "s3://bucket/x"}).code, 253);
  // These are a matter of what was asked for.
  EXPECT_EQ(Run({"stat", "s3://"}).code, 252);
  EXPECT_EQ(Run({"stat", "s3://b(d/x"}).code, 252);
}

// Also of settings that are refused, which is when they are shown.
TEST_F(CliTest, a_password_in_a_url_is_never_printed) {
  environment_["AWS_MAX_ATTEMPTS"] = "1";
  const std::string url = "http://user:hunter2@127.0.0.1:9/x";
  const Environment keys = {{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};
  const auto with = [&](Environment more) {
    more.insert(environment_.begin(), environment_.end());
    return more;
  };
  Environment proxy = keys;
  proxy["AWS_ENDPOINT_URL"] = "https://name.invalid";
  proxy["HTTPS_PROXY"] = "ftp://user:hunter2 @127.0.0.1:9";
  Environment endpoint = keys;
  endpoint["AWS_ENDPOINT_URL"] = url;
  for (const Environment& environment :
       {with(proxy), with(endpoint), with({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}}),
        with({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", url}, {"AWS_EC2_METADATA_DISABLED", "false"}}),
        with({{"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
              {"AWS_WEB_IDENTITY_TOKEN_FILE", "/etc/hostname"},
              {"AWS_ENDPOINT_URL_STS", url}})}) {
    environment_ = environment;
    for (const char* command : {"stat", "doctor"}) {
      const Ran ran = Run({"--log", "trace", command, "s3://bucket/x"});
      EXPECT_EQ(ran.code, 253) << ran.err;
      EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("hunter2")));
    }
  }
}

TEST_F(CliTest, an_object_that_is_no_video_is_one_that_failed) {
  WriteFile(folder_ / "text", "no video");
  WriteFile(folder_ / "empty", "");
  WriteFile(folder_ / "x.fbc", "no catalog");
  for (const std::string command : {"frames", "inspect"}) {
    for (const std::string name : {"text", "empty"}) {
      const Ran ran = Run({command, folder_ / name});
      EXPECT_EQ(ran.code, 1) << command << name << ran.err;
      EXPECT_THAT(ran.err, HasSubstr(folder_ / name));
    }
  }
  EXPECT_EQ(Run({"inspect", folder_ / "x.fbc"}).code, 1);
  EXPECT_EQ(Run({"frames", folder_ / "none"}).code, 254);
}

TEST_F(CliTest, frames_prints_what_was_asked_for) {
  const Ran two = Run({"frames", kVideo, "--numbers", "4,1", "--json"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, ::testing::StartsWith("{\"schema\":\"forebay.frames/1\",\"frame\":1,"));
  EXPECT_EQ(std::ranges::count(two.out, '\n'), 2);
  const Ran timed = Run({"frames", kVideo, "--times", "0.15,0.4", "--json"});
  EXPECT_EQ(timed.out, two.out);
  const Ran all = Run({"frames", kVideo, "--framemd5"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("#dimensions 0: 32x32\n"));
  // ffmpeg -i h264.mp4 -map 0:v -f framemd5 -; the times in the stream's own units
  EXPECT_THAT(all.out, HasSubstr("0,          0,          0,     1024,     1536, "
                                 "9ec573d36e343d78d71a2214b7e5ad7a\n"));
  EXPECT_EQ(std::ranges::count(all.out, '\n'), 8 + 6);
  const Ran written = Run({"frames", kVideo, "--numbers", "0,5", "-o", folder_ / "png"});
  EXPECT_EQ(written.code, 0) << written.err;
  for (const std::string name : {"000000.png", "000005.png"}) {
    EXPECT_THAT(ReadFile(folder_ / ("png/" + name)), ::testing::StartsWith("\x89PNG\r\n"));
  }
}

TEST_F(CliTest, frames_that_are_not_there_are_bad_usage) {
  for (const Args& args :
       {Args{"--numbers", "6"}, Args{"--numbers", "1,x"}, Args{"--numbers", "-1"},
        Args{"--times", "-1"}, Args{"--times", "nan"}, Args{"--stream", "-3"},
        Args{"--stream", "-1"}, Args{"--stream", "7"}, Args{"--stream", "x"},
        Args{"--verify", "some"}, Args{"--framemd5", "-o", folder_ / "x"}}) {
    Args all = {"frames", kVideo};
    all.insert(all.end(), args.begin(), args.end());
    const Ran ran = Run(all);
    EXPECT_EQ(ran.code, 252) << ::testing::PrintToString(args) << ran.err;
    EXPECT_EQ(ran.out, "") << ::testing::PrintToString(args);
  }
}

TEST_F(CliTest, inspect_tells_of_videos_and_catalogs) {
  const Ran video = Run({"inspect", kVideo});
  EXPECT_EQ(video.code, 0) << video.err;
  EXPECT_THAT(video.out, AllOf(HasSubstr("\n  \"kind\": \"video\",\n"),
                               HasSubstr("\"codec\": \"h264\""), HasSubstr("\"frames\": 6")));
  const Ran line = Run({"inspect", "--json", kVideo});
  EXPECT_EQ(std::ranges::count(line.out, '\n'), 1);
  EXPECT_THAT(line.out, ::testing::StartsWith("{\"schema\":\"forebay.inspect/1\","));
  fs::create_directories(folder_ / "d");
  fs::copy(kVideo, folder_ / "d/a.mp4");
  EXPECT_EQ(Run({"index", folder_ / "d"}).code, 0);
  const Ran catalog = Run({"inspect", folder_ / "d/.forebay/catalog.fbc"});
  EXPECT_EQ(catalog.code, 0) << catalog.err;
  EXPECT_THAT(catalog.out, AllOf(HasSubstr("\"kind\": \"catalog\""), HasSubstr("\"a.mp4\"")));
}

TEST_F(CliTest, index_says_what_it_left_out_with_its_own_code) {
  fs::create_directories(folder_ / "d");
  fs::copy(kVideo, folder_ / "d/a.mp4");
  EXPECT_EQ(Run({"index", folder_ / "d"}).code, 0);
  WriteFile(folder_ / "d/notes.txt", "no video");
  fs::create_symlink(folder_ / "nowhere", folder_ / "d/dangling.mp4");
  const Ran ran = Run({"index", folder_ / "d", "--json"});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("notes.txt"), HasSubstr("dangling.mp4")));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\"objects\":3,"), HasSubstr("\"objects_skipped\":2,")));
  const Ran one = Run({"index", folder_ / "d/a.mp4"});
  EXPECT_EQ(one.code, 252);
  EXPECT_THAT(one.err, HasSubstr("d/a.mp4 is one object"));
  EXPECT_EQ(Run({"index", folder_ / "none"}).code, 254);
}

TEST_F(CliTest, plain_objects_are_indexed_inspected_and_appended_to) {
  WriteFile(folder_ / "d/b/two.txt", "22");
  WriteFile(folder_ / "d/a.txt", "1");
  EXPECT_THAT(Run({"index", folder_ / "d"}).out, HasSubstr("none was read"));
  const Ran first = Run({"index", folder_ / "d", "--format", "files", "--json"});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("\"bytes_read\":0,"), HasSubstr("\"appended\":2,"),
                               HasSubstr("\"format\":\"files\"")));
  WriteFile(folder_ / "d/a.a", "333");
  const Ran more = Run({"index", folder_ / "d", "--append", "--json"});
  EXPECT_THAT(more.out, AllOf(HasSubstr("\"appended\":1,"), HasSubstr("\"generations\":2")));
  const Ran told = Run({"inspect", "--json", folder_ / "d/.forebay/catalog.fbc"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("\"kind\":\"files_catalog\""), HasSubstr("\"bytes\":6,"),
                              HasSubstr("\"samples\":3,")));
  // In the order of their numbers: what is new comes last.
  const size_t a = told.out.find("\"a.txt\""), b = told.out.find("\"b/two.txt\"");
  EXPECT_LT(a, b);
  EXPECT_LT(b, told.out.find("\"a.a\""));
  WriteFile(folder_ / "d/a.txt", "changed");
  const Ran changed = Run({"index", folder_ / "d", "--append"});
  EXPECT_EQ(changed.code, 254);
  EXPECT_THAT(changed.err, HasSubstr("a.txt has changed since it was indexed"));
  EXPECT_EQ(Run({"index", folder_ / "d", "--format", "video", "--append"}).code, 252);
}

TEST_F(CliTest, what_is_no_object_is_named_and_told_by_the_exit_code) {
  WriteFile(folder_ / "d/file", "x");
  fs::create_symlink("file", folder_ / "d/link");
  fs::create_symlink("nothing", folder_ / "d/dangling");
  fs::create_directory_symlink(".", folder_ / "d/loop");
  ASSERT_EQ(::mkfifo((folder_ / "d/sub-fifo").c_str(), 0600), 0);
  const Ran copy = Run({"cp", "-r", folder_ / "d", folder_ / "to", "--json"});
  EXPECT_EQ(copy.code, 2) << copy.err;
  EXPECT_THAT(copy.out,
              AllOf(HasSubstr("\"objects_copied\":2,"), HasSubstr("\"objects_left_out\":3,")));
  const Ran list = Run({"ls", "-r", folder_ / "d"});
  EXPECT_EQ(list.code, 2);
  EXPECT_EQ(std::ranges::count(list.out, '\n'), 2) << list.out;
  for (const std::string& text : {copy.err, list.err}) {
    for (const std::string name : {"/d/dangling: ", "/d/loop: ", "/d/sub-fifo: "}) {
      EXPECT_THAT(text, HasSubstr(name));
    }
  }
  EXPECT_EQ(Run({"cp", "-r", folder_ / "to", folder_ / "again"}).code, 0);
}

TEST_F(CliTest, an_empty_folder_is_there_and_a_missing_one_is_not) {
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(Run({"ls", folder_ / "empty"}).code, 0);
  EXPECT_EQ(Run({"ls", "-r", folder_ / "empty/"}).code, 0);
  EXPECT_EQ(Run({"ls", folder_ / "none"}).code, 254);
  EXPECT_EQ(Run({"ls", folder_ / "none/"}).code, 254);
}

TEST_F(CliTest, a_flag_beats_the_environment_and_that_the_config_file) {
  WriteFile(folder_ / ".config/forebay/config.toml", "# mine\njson = true\nlog = \"nonsense\"\n");
  WriteFile(folder_ / "x", "x");
  EXPECT_EQ(Run({"stat", folder_ / "x"}).code, 253);
  environment_["FOREBAY_LOG"] = "error";
  EXPECT_THAT(Run({"stat", folder_ / "x"}).out, HasSubstr("\"schema\""));
  environment_["FOREBAY_JSON"] = "no";
  EXPECT_THAT(Run({"stat", folder_ / "x"}).out, Not(HasSubstr("\"schema\"")));
  EXPECT_THAT(Run({"stat", "--json", folder_ / "x"}).out, HasSubstr("\"schema\""));
}

TEST_F(CliTest, completion_scripts_name_every_command) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = Run({"completion", shell});
    EXPECT_EQ(ran.code, 0);
    for (const std::string command : {"ls", "stat", "cat", "cp"}) {
      EXPECT_THAT(ran.out, HasSubstr(command));
    }
    for (size_t at = 0, end; (end = ran.out.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = ran.out.substr(at, end - at);
      if (line.starts_with("complete -c")) {
        EXPECT_EQ(std::ranges::count(line, '\'') % 2, 0) << line;
      }
    }
  }
  EXPECT_EQ(Run({"completion", "tcsh"}).code, 252);
}

TEST_F(CliTest, a_tree_is_copied_whole_and_then_found_to_be_there) {
  WriteFile(folder_ / "from/a", "a");
  WriteFile(folder_ / "from/deep/er/b", Noise(20'000'000));
  WriteFile(folder_ / "from/empty", "");
  WriteFile(folder_ / "from/.forebay/catalog.fbc", "of the copy that it lies beside");
  const Ran first = Run({"cp", "-r", folder_ / "from", folder_ / "to", "--json"});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\"objects_copied\":3"));
  for (const std::string name : {"a", "deep/er/b", "empty"}) {
    EXPECT_TRUE(ReadFile(folder_ / ("from/" + name)) == ReadFile(folder_ / ("to/" + name))) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "to/.forebay"));
  WriteFile(folder_ / "to/a", "changed");
  EXPECT_EQ(Run({"cp", "-r", folder_ / "from", folder_ / "to"}).code, 0);
  EXPECT_EQ(ReadFile(folder_ / "to/a"), "a");
  EXPECT_EQ(Run({"cp", folder_ / "from", folder_ / "to"}).code, 254);
  EXPECT_EQ(Run({"cp", folder_ / "from/a", folder_ / "from/a"}).code, 252);
  EXPECT_EQ(Run({"cp", "-r", folder_ / "from", folder_ / "from/sub"}).code, 252);
  EXPECT_EQ(Run({"cp", "-r", folder_ / "none", folder_ / "new"}).code, 254);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(CliTest, one_that_fails_of_many_is_named_and_the_rest_is_copied) {
  WriteFile(folder_ / "from/good", "good");
  WriteFile(folder_ / "from/name", "x");
  fs::create_directories(folder_ / "to/name");  // where a file should go
  // A link in the destination must not let a copy out of it.
  WriteFile(folder_ / "from/door/x", "x");
  fs::create_directories(folder_ / "outside");
  fs::create_symlink(folder_ / "outside", folder_ / "to/door");
  const Ran ran = Run({"cp", "-r", folder_ / "from", folder_ / "to"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("from/name"));
  EXPECT_EQ(ReadFile(folder_ / "to/good"), "good");
  EXPECT_TRUE(fs::is_empty(folder_ / "outside"));
}

class InterruptTest : public CliTest {
 protected:
  void SetUp() override {
    body_ = Noise(60'000'000);
    WriteFile(folder_ / "root/bucket/big", body_);
    ServeFolder(folder_ / "root", "150ms");
  }
  // Starts a copy and waits until it has begun to write.
  std::unique_ptr<Process> StartCopy() {
    fs::remove(folder_ / "big.forebay-part");
    auto copy = Start({"cp", "s3://bucket/big", folder_ / "big"});
    for (int i = 0; i < 2000 && !fs::exists(folder_ / "big.forebay-part"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return copy;
  }
  std::string body_;
};

TEST_F(InterruptTest, a_killed_copy_leaves_no_half_file_and_the_next_run_completes_it) {
  const auto copy = StartCopy();
  copy->Kill(SIGKILL);
  EXPECT_EQ(copy->Wait(), 1000 + SIGKILL);
  EXPECT_FALSE(fs::exists(folder_ / "big"));
  EXPECT_TRUE(fs::exists(folder_ / "big.forebay-part"));
  const Ran again = Run({"cp", "s3://bucket/big", folder_ / "big"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(ReadFile(folder_ / "big") == body_);
  EXPECT_FALSE(fs::exists(folder_ / "big.forebay-part"));
}

TEST_F(InterruptTest, a_copy_waits_for_the_lock_of_one_that_is_being_taken_apart) {
  // As a killed process that the kernel is not done with yet.
  const std::string part = folder_ / "big.forebay-part";
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  auto copy = Start({"cp", "s3://bucket/big", folder_ / "big"});
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  ::close(fd);
  EXPECT_EQ(copy->Wait(), 0) << copy->err();
  EXPECT_TRUE(ReadFile(folder_ / "big") == body_);
}

TEST_F(InterruptTest, of_two_copies_of_one_file_the_second_is_refused) {
  const std::string part = folder_ / "big.forebay-part";
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const Ran copy = Run({"cp", "s3://bucket/big", folder_ / "big"});
  ::close(fd);
  EXPECT_EQ(copy.code, 255);
  EXPECT_THAT(copy.err, HasSubstr("another copy"));
}

TEST_F(InterruptTest, a_signal_ends_a_copy_that_waits_for_an_answer_at_once) {
  WriteFile(folder_ / "slow.json", R"({"methods": ["GET", "HEAD"]})");
  for (const std::string rules : {"", "slow.json"}) {
    ServeFolder(folder_ / "root", "20s", rules.empty() ? "" : folder_ / rules);
    for (const Args& args : {Args{"cp", "s3://bucket/big", folder_ / "big"},
                             Args{"cp", "-r", "s3://bucket/", folder_ / "all"}}) {
      const auto copy = Start(args);
      copy->WaitForSocket();
      const auto start = std::chrono::steady_clock::now();
      copy->Kill(SIGINT);
      EXPECT_EQ(copy->Wait(), 130);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    }
  }
}

TEST_F(InterruptTest, what_an_older_version_left_is_not_mixed_with_the_new_one) {
  const auto copy = StartCopy();
  copy->Kill(SIGKILL);
  copy->Wait();
  const std::string other = Noise(59'999'999);
  WriteFile(folder_ / "root/bucket/big", other);
  EXPECT_EQ(Run({"cp", "s3://bucket/big", folder_ / "big"}).code, 0);
  EXPECT_TRUE(ReadFile(folder_ / "big") == other);
}

TEST_F(InterruptTest, signals_end_with_their_own_codes_and_keep_partial_work) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto copy = StartCopy();
    copy->Kill(signal);
    EXPECT_EQ(copy->Wait(), 128 + signal);
    EXPECT_THAT(copy->err(), HasSubstr("the same command resumes the copy"));
    EXPECT_FALSE(fs::exists(folder_ / "big"));
    EXPECT_TRUE(fs::exists(folder_ / "big.forebay-part"));
  }
}

TEST_F(CliTest, throttling_that_does_not_end_asks_for_the_same_command_again) {
  WriteFile(folder_ / "root/bucket/x", "x");
  WriteFile(folder_ / "rules.json", R"({"rules": [{"actions": [{"do": "slow_down"}]}]})");
  ServeFolder(folder_ / "root", "0ms", folder_ / "rules.json");
  environment_["AWS_MAX_ATTEMPTS"] = "2";
  for (const Args& args : {Args{"cat", "s3://bucket/x"}, Args{"ls", "s3://bucket/"},
                           Args{"cp", "s3://bucket/x", folder_ / "y"}}) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 75) << args[0] << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("503"));
  }
}

TEST_F(CliTest, trace_has_a_line_for_each_request) {
  WriteFile(folder_ / "root/bucket/x\ny", "0123456789");
  WriteFile(
      folder_ / "rules.json",
      R"({"rules": [{"match": {"method": "GET", "nth": 1}, "actions": [{"do": "slow_down"}]}]})");
  ServeFolder(folder_ / "root", "0ms", folder_ / "rules.json");
  const Ran traced = Run({"--log", "trace", "cat", "--range", "2-4", "s3://bucket/x\ny"});
  EXPECT_EQ(traced.code, 0);
  EXPECT_EQ(traced.out, "234");
  EXPECT_EQ(std::ranges::count(traced.err, '\n'), 3) << traced.err;
  EXPECT_THAT(traced.err, HasSubstr("forebay trace: HEAD s3://bucket/x?y -> 200, "));
  EXPECT_THAT(traced.err, HasSubstr("GET s3://bucket/x?y [2, 5) -> 503 SlowDown, "));
  EXPECT_THAT(traced.err, HasSubstr("GET s3://bucket/x?y [2, 5) -> 206, 3 bytes in "));
  EXPECT_EQ(Run({"--log", "debug", "cat", "s3://bucket/x\ny"}).err, "");
  const Ran refused = Run({"--log", "trace", "cat", "s3://bucket/none"});
  EXPECT_THAT(refused.err, HasSubstr("HEAD s3://bucket/none -> 404, "));
}

class SeaweedTest : public CliTest {
 protected:
  static void SetUpTestSuite() {
    auto server = testing::S3Server::Start("cli-test");
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    s3_ = *std::move(server);
  }
  static void TearDownTestSuite() { s3_.reset(); }
  void SetUp() override {
    ASSERT_NE(s3_, nullptr);
    const auto config = s3_->Options("cli-test").config;
    environment_["AWS_ENDPOINT_URL_S3"] = s3_->endpoint();
    environment_["AWS_ACCESS_KEY_ID"] = config.credentials.access_key_id;
    secret_ = config.credentials.secret_access_key;
    environment_["AWS_SECRET_ACCESS_KEY"] = secret_;
  }
  static std::unique_ptr<testing::S3Server> s3_;
  std::string secret_;
};
std::unique_ptr<testing::S3Server> SeaweedTest::s3_;

TEST_F(SeaweedTest, odd_keys_go_up_and_come_back) {
  const Args names = {"a b",  "a+b",       "a%2Bb", "a%b",   "é",
                      "日本", "a&b=c?d#e", "a;b~",  "*'()!", "dt=2024-01-01/x"};
  for (const std::string& name : names) WriteFile(folder_ / ("up/" + name), name);
  const Ran up = Run({"cp", "-r", folder_ / "up", "s3://cli-test/odd"});
  EXPECT_EQ(up.code, 0) << up.err;
  const Ran list = Run({"ls", "-r", "s3://cli-test/odd/"});
  for (const std::string& name : names) {
    EXPECT_THAT(list.out, HasSubstr(" s3://cli-test/odd/" + name + "\n"));
    EXPECT_EQ(Run({"cat", "s3://cli-test/odd/" + name}).out, name);
    EXPECT_EQ(Run({"cat", "--range", "1-1", "s3://cli-test/odd/" + name}).out, name.substr(1, 1));
  }
  const Ran down = Run({"cp", "-r", "s3://cli-test/odd/", folder_ / "down"});
  EXPECT_EQ(down.code, 0) << down.err;
  for (const std::string& name : names) EXPECT_EQ(ReadFile(folder_ / ("down/" + name)), name);
  EXPECT_EQ(Run({"stat", "s3://cli-test/odd/none"}).code, 254);
  EXPECT_EQ(Run({"ls", "s3://no-such-bucket/"}).code, 254);
}

TEST_F(SeaweedTest, an_empty_bucket_is_there_and_an_empty_prefix_is_not) {
  ASSERT_TRUE(s3_->MakeBucket("cli-empty").ok());
  for (const std::string uri : {"s3://cli-empty", "s3://cli-empty/"}) {
    const Ran ran = Run({"ls", uri});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(Run({"ls", "s3://cli-empty/none"}).code, 254);
}

TEST_F(SeaweedTest, a_large_file_goes_up_in_parts_and_comes_back) {
  const std::string body = Noise(40'000'000);
  WriteFile(folder_ / "large", body);
  const Ran up = Run({"cp", folder_ / "large", "s3://cli-test/large/"});
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_EQ(Run({"cp", "s3://cli-test/large/large", folder_ / "back"}).code, 0);
  EXPECT_TRUE(ReadFile(folder_ / "back") == body);
  EXPECT_TRUE(Run({"cat", "s3://cli-test/large/large"}).out == body);
}

TEST_F(SeaweedTest, a_tree_goes_up_where_few_files_may_be_open) {
  for (int i = 0; i < 200; ++i) {
    WriteFile(folder_ / ("up/" + std::to_string(i)), Noise(i % 50 == 0 ? 20'000'000 : 1000));
  }
  const std::string line =
      "ulimit -n 64; exec " FOREBAY_PROGRAM " cp -r " + (folder_ / "up") + " s3://cli-test/few/";
  Process process("/bin/sh", {"-c", line}, environment_, folder_ / "few");
  EXPECT_EQ(process.Wait(), 0) << process.err();
  const std::string listed = Run({"ls", "-r", "s3://cli-test/few/"}).out;
  EXPECT_EQ(std::ranges::count(listed, '\n'), 200);
}

TEST_F(SeaweedTest, bench_puts_into_a_bucket_and_takes_away_again) {
  const Ran ran = Run({"bench", "store", "s3://cli-test/bench/", "--op", "put", "--range", "64KiB",
                       "--inflight", "8", "--requests", "40", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(NumberOf(ran.out, "requests"), 40);
  EXPECT_EQ(Run({"ls", "-r", "s3://cli-test/bench/"}).code, 254);
}

TEST_F(SeaweedTest, secrets_are_never_printed) {
  WriteFile(folder_ / "x", "x");
  for (const Args& args :
       {Args{"cp", folder_ / "x", "s3://cli-test/x"}, Args{"stat", "s3://cli-test/x"},
        Args{"stat", "s3://cli-test/none"}, Args{"ls", "s3://no-such-bucket/"},
        Args{"doctor", "s3://cli-test/"}, Args{"doctor", "--json", "s3://no-such-bucket/"}}) {
    Args traced = args;
    traced.insert(traced.begin(), {"--log", "trace"});
    const Ran ran = Run(traced);
    EXPECT_THAT(ran.out + ran.err, Not(HasSubstr(secret_)));
    EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("Signature=")));
  }
  environment_["AWS_SECRET_ACCESS_KEY"] = "wrong" + secret_;
  const Ran refused = Run({"--log", "trace", "stat", "s3://cli-test/x"});
  EXPECT_EQ(refused.code, 254) << refused.err;
  EXPECT_THAT(refused.err, Not(HasSubstr(secret_)));
}

}  // namespace
}  // namespace forebay::testing
