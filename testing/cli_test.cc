// The real program against folders, the fault server and a real S3 server.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "testing/s3_server.h"
#include "testing/temp_folder.h"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

using Args = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string Noise(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 7;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

// A child with its output in files; killed when it outlives the test.
class Process {
 public:
  Process(const std::string& program, const Args& args, const Environment& environment,
          const std::string& output)
      : output_(output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, (output + ".out").c_str(), kFlags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, (output + ".err").c_str(), kFlags, 0600);
    std::vector<std::string> words = {program};
    words.insert(words.end(), args.begin(), args.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& setting : settings) envp.push_back(setting.data());
    envp.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (pid_ <= 0) return;
    Kill(SIGKILL);
    Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Kill(int signal) const { ::kill(pid_, signal); }
  // The exit code; 1000 + signal when one ended it.
  int Wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string out() const { return ReadFile(output_ + ".out"); }
  std::string err() const { return ReadFile(output_ + ".err"); }

 private:
  std::string output_;
  pid_t pid_ = -1;
};

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    environment_["HOME"] = folder_.path();
    for (const char* name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
      if (const char* value = std::getenv(name)) environment_[name] = value;
    }
  }

  std::unique_ptr<Process> Start(const Args& args) {
    return std::make_unique<Process>(FOREBAY_PROGRAM, args, environment_,
                                     folder_ / ("run" + std::to_string(++runs_)));
  }
  Ran Run(const Args& args) {
    const auto process = Start(args);
    const int code = process->Wait();
    return {.code = code, .out = process->out(), .err = process->err()};
  }
  // Serves `folder`, each GET after `latency`; sets the endpoint of what is run later.
  void ServeFolder(const std::string& folder, const std::string& latency) {
    const char* program = std::getenv("FOREBAY_FAULTS");
    ASSERT_NE(program, nullptr) << "FOREBAY_FAULTS names the fault server; ctest sets it";
    const std::string port_file = folder_ / "port";
    server_ = std::make_unique<Process>(
        program,
        Args{"--root", folder, "--latency", "constant:" + latency, "--port-file", port_file},
        environment_, folder_ / "faults");
    for (int i = 0; i < 1000 && !fs::exists(port_file); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::string text = ReadFile(port_file);
    const std::string mark = "\"endpoint\":\"";
    const size_t begin = text.find(mark) + mark.size();
    environment_["AWS_ENDPOINT_URL"] = text.substr(begin, text.find('"', begin) - begin);
    environment_["FOREBAY_NO_SIGN_REQUEST"] = "1";
  }

  testing::TempFolder folder_;
  Environment environment_;
  std::unique_ptr<Process> server_;
  int runs_ = 0;
};

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

TEST_F(SeaweedTest, a_large_file_goes_up_in_parts_and_comes_back) {
  const std::string body = Noise(40'000'000);
  WriteFile(folder_ / "large", body);
  const Ran up = Run({"cp", folder_ / "large", "s3://cli-test/large/"});
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_EQ(Run({"cp", "s3://cli-test/large/large", folder_ / "back"}).code, 0);
  EXPECT_TRUE(ReadFile(folder_ / "back") == body);
  EXPECT_TRUE(Run({"cat", "s3://cli-test/large/large"}).out == body);
}

TEST_F(SeaweedTest, secrets_are_never_printed) {
  WriteFile(folder_ / "x", "x");
  for (const Args& args :
       {Args{"cp", folder_ / "x", "s3://cli-test/x"}, Args{"stat", "s3://cli-test/x"},
        Args{"stat", "s3://cli-test/none"}, Args{"ls", "s3://no-such-bucket/"}}) {
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
}  // namespace forebay
