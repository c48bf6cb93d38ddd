// Many processes of the real program that start at once, with a metadata service and an S3 server
// that only answer what is signed with its keys.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "testing/credential_services.h"
#include "testing/temp_folder.h"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::KeysJson;
using testing::KeysXml;
using ::testing::Not;
using testing::Say;
using testing::ScriptedReply;
using testing::ScriptedServer;
using testing::SeenRequest;

using Environment = std::map<std::string, std::string>;

int64_t InAnHour() { return ::time(nullptr) + 3600; }

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Header(const SeenRequest& request, const std::string& name) {
  return std::string(net::FindHeader(request.headers, name));
}

// An object "bucket/key" for whoever signs as `id` with its token.
ScriptedReply Object(const SeenRequest& request, const std::string& id) {
  const bool ours =
      Header(request, "Authorization").find("Credential=" + id + "/") != std::string::npos &&
      Header(request, "x-amz-security-token") == id + "-token";
  if (!ours) return Say(403, "<Error><Code>AccessDenied</Code></Error>");
  return {.bytes = testing::HttpText(200, {{"ETag", "\"e\""}}, ""),
          .then = ScriptedReply::Then::kKeep};
}

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    fs::create_directory(folder_ / "runtime");
    environment_["HOME"] = folder_.path();
    environment_["XDG_RUNTIME_DIR"] = folder_ / "runtime";
    for (const char* name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
      if (const char* value = std::getenv(name)) environment_[name] = value;
    }
  }

  pid_t Start(const std::vector<std::string>& arguments) {
    const std::string output = folder_ / fmt::format("run{}", ++runs_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    std::vector<std::string> words{FOREBAY_PROGRAM, "--log", "trace"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment_) {
      settings.push_back(std::string(name).append("=").append(value));
    }
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& setting : settings) envp.push_back(setting.data());
    envp.push_back(nullptr);
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, FOREBAY_PROGRAM, &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }
  int Wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int Run(const std::vector<std::string>& arguments) { return Wait(Start(arguments)); }
  std::string LastOutput() const { return ReadFile(folder_ / fmt::format("run{}", runs_)); }
  // Everything that any run has printed or left, but for what is closed to all others.
  std::string AllWritten() const {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (!entry.is_regular_file()) continue;
      const fs::perms others = fs::perms::group_all | fs::perms::others_all;
      const bool closed = (entry.status().permissions() & others) == fs::perms::none &&
                          entry.path().parent_path().filename() == "forebay";
      text += entry.path().string() + "\n";
      if (!closed) text += ReadFile(entry.path());
    }
    return text;
  }

  testing::TempFolder folder_;
  Environment environment_;
  int runs_ = 0;
};

TEST_F(CredentialsTest, of_many_processes_that_start_at_once_at_most_two_fetch) {
  std::atomic<int> fetches = 0;
  const ScriptedServer metadata([&](const SeenRequest& request) {
    if (request.method == "PUT") return Say(200, "imds-session");
    if (request.target.ends_with("/the-role")) {
      ++fetches;
      return Say(200, KeysJson("META", InAnHour()));
    }
    return Say(200, "the-role");
  });
  const ScriptedServer s3([](const SeenRequest& request) { return Object(request, "META"); });
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = metadata.url();
  environment_["AWS_EC2_METADATA_V1_DISABLED"] = "true";
  environment_["AWS_ENDPOINT_URL_S3"] = s3.url();
  const char* told = std::getenv("FOREBAY_TEST_PROCESSES");
  const int processes = told != nullptr ? std::atoi(told) : 32;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) children.push_back(Start({"stat", "s3://bucket/key"}));
  for (const pid_t child : children) EXPECT_EQ(Wait(child), 0) << LastOutput();
  EXPECT_GE(fetches, 1);
  EXPECT_LE(fetches, 2);
  EXPECT_LE(metadata.seen().size(), 6U);
  const std::string written = AllWritten();
  EXPECT_THAT(written, HasSubstr("/runtime/forebay/credentials-"));
  for (const char* secret : {"META-secret", "META-token", "imds-session", "Signature="}) {
    EXPECT_THAT(written, Not(HasSubstr(secret)));
  }
}

TEST_F(CredentialsTest, keys_of_the_environment_ask_nobody) {
  const ScriptedServer metadata([](const SeenRequest&) { return Say(200, "asked"); });
  const ScriptedServer s3([](const SeenRequest& request) { return Object(request, "STATIC"); });
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = metadata.url();
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = metadata.url();
  environment_["AWS_ENDPOINT_URL_S3"] = s3.url();
  environment_["AWS_ACCESS_KEY_ID"] = "STATIC";
  environment_["AWS_SECRET_ACCESS_KEY"] = "STATIC-secret";
  environment_["AWS_SESSION_TOKEN"] = "STATIC-token";
  EXPECT_EQ(Run({"stat", "s3://bucket/key"}), 0) << LastOutput();
  EXPECT_TRUE(metadata.seen().empty());
  EXPECT_THAT(AllWritten(), Not(HasSubstr("/credentials-"))) << "what needs no fetch is not shared";
  EXPECT_THAT(AllWritten(), Not(HasSubstr("STATIC-")));
}

TEST_F(CredentialsTest, a_refused_role_is_told_without_a_secret) {
  const ScriptedServer sts([](const SeenRequest& request) {
    EXPECT_THAT(request.body, HasSubstr("WebIdentityToken=jwt-secret"));
    return Say(403,
               "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized"
               "</Message></Error></ErrorResponse>");
  });
  std::ofstream(folder_ / "jwt") << "jwt-secret";
  fs::permissions(folder_ / "jwt", fs::perms::owner_read);
  environment_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_ / "jwt";
  environment_["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/x";
  environment_["AWS_ENDPOINT_URL_STS"] = sts.url();
  environment_["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9";
  EXPECT_EQ(Run({"stat", "s3://bucket/key"}), 253);
  for (const char* part :
       {"AWS_WEB_IDENTITY_TOKEN_FILE", "arn:aws:iam::1:role/x", "AccessDenied", "Not authorized"}) {
    EXPECT_THAT(LastOutput(), HasSubstr(part));
  }
  EXPECT_THAT(LastOutput(), Not(HasSubstr("jwt-secret")));
}

TEST_F(CredentialsTest, a_credential_process_runs_once_for_all_and_its_words_stay_with_it) {
  const ScriptedServer s3([](const SeenRequest& request) { return Object(request, "PROG"); });
  std::ofstream(folder_ / "keys") << fmt::format(
      R"({{"Version":1,"AccessKeyId":"PROG","SecretAccessKey":"PROG-secret",)"
      R"("SessionToken":"PROG-token","Expiration":"{}"}})",
      store::s3::FormatUtcTime(InAnHour()));
  std::ofstream(folder_ / "config") << "[default]\ncredential_process = sh -c \"echo run >> "
                                    << folder_ / "runs" << "; cat " << folder_ / "keys" << "\"\n";
  environment_["AWS_CONFIG_FILE"] = folder_ / "config";
  environment_["AWS_ENDPOINT_URL_S3"] = s3.url();
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) children.push_back(Start({"stat", "s3://bucket/key"}));
  for (const pid_t child : children) EXPECT_EQ(Wait(child), 0) << LastOutput();
  EXPECT_EQ(ReadFile(folder_ / "runs"), "run\n");
  fs::remove(folder_ / "keys");
  EXPECT_THAT(AllWritten(), Not(HasSubstr("PROG-")));
}

TEST_F(CredentialsTest, a_program_that_hangs_ends_with_the_command) {
  std::ofstream(folder_ / "config") << "[default]\ncredential_process = sleep 3600\n";
  environment_["AWS_CONFIG_FILE"] = folder_ / "config";
  environment_["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9";
  const pid_t child = Start({"stat", "s3://bucket/key"});
  const auto program = [&]() -> pid_t {
    for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", child))) {
      const std::string children = ReadFile(task.path() / "children");
      if (!children.empty()) return std::atoi(children.c_str());
    }
    return 0;
  };
  pid_t sleeping = 0;
  // Asked for without a pause: so that it is also met before it has said that it ends with us.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (sleeping == 0 && std::chrono::steady_clock::now() < until) sleeping = program();
  ASSERT_NE(sleeping, 0);
  ::kill(child, SIGTERM);
  EXPECT_NE(Wait(child), 0);
  // Gone, or dead and waiting to be fetched by whoever inherits it.
  const auto runs = [&] {
    const std::string state = ReadFile(fmt::format("/proc/{}/stat", sleeping));
    return !state.empty() && state.find(") Z ") == state.npos;
  };
  for (int i = 0; i < 1000 && runs(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(runs()) << "it was left behind";
}

TEST_F(CredentialsTest, a_signal_ends_what_a_program_has_started_too) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const fs::path told = folder_ / fmt::format("started{}", signal);
    std::ofstream(folder_ / "program") << "sleep 3600 & echo $! > " << told.string() << ".new; mv "
                                       << told.string() << ".new " << told.string() << "; wait\n";
    std::ofstream(folder_ / "config")
        << "[default]\ncredential_process = sh " << (folder_ / "program") << "\n";
    environment_["AWS_CONFIG_FILE"] = folder_ / "config";
    environment_["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9";
    const pid_t child = Start({"stat", "s3://bucket/key"});
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    for (int i = 0; i < 10'000 && !fs::exists(told); ++i) pause();
    const pid_t started = std::atoi(ReadFile(told).c_str());
    ASSERT_GT(started, 0) << LastOutput();
    ::kill(child, signal);
    EXPECT_EQ(Wait(child), 128 + signal);
    const auto runs = [&] {
      const std::string state = ReadFile(fmt::format("/proc/{}/stat", started));
      return !state.empty() && state.find(") Z ") == state.npos;
    };
    for (int i = 0; i < 2'000 && runs(); ++i) pause();
    EXPECT_FALSE(runs()) << "signal " << signal;
    if (runs()) ::kill(started, SIGKILL);
  }
}

}  // namespace
}  // namespace forebay
