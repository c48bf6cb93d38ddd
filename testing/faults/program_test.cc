// The program itself, as a child process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "testing/faults/raw_client.h"
#include "testing/faults/temp_folder.h"

extern char** environ;

namespace forebay::faults {
namespace {

using namespace std::chrono_literals;

class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out_ = Fd(ends[0]);
    const Fd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    arguments.insert(arguments.begin(), FOREBAY_FAULTS_PROGRAM);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ > 0 && !Wait(0s)) {
      ::kill(pid_, SIGKILL);
      Wait(10s);
    }
  }

  std::string ReadLine() {
    std::string line;
    char c = 0;
    pollfd poll{.fd = out_.get(), .events = POLLIN};
    while (::poll(&poll, 1, 10'000) > 0 && ::read(out_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  void Terminate() { ::kill(pid_, SIGTERM); }
  // True once it has ended, with its status in `exit_code`.
  bool Wait(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (pid_ > 0) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        return true;
      }
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  int exit_code = -1;

 private:
  pid_t pid_ = -1;
  Fd out_;
};

uint16_t PortIn(const std::string& line) {
  const std::string key = "\"port\":";
  const size_t at = line.find(key);
  EXPECT_NE(at, std::string::npos) << line;
  return at == std::string::npos ? 0 : static_cast<uint16_t>(std::stoi(line.substr(at + 7)));
}

TEST(Program, says_where_it_listens_serves_and_ends_within_a_second_of_sigterm) {
  TempFolder folder;
  folder.Write("b/k", "hello");
  folder.Write("rules.json", R"({"rules":[{"match":{"key":"k"},
                                 "actions":[{"do":"stall","at":1,"for":"100s"}]}]})");
  folder.Write("b/plain", "plain");
  const std::string port_file = folder.path() + "/port";
  Program program({"--root", folder.path(), "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
                   "--rules", folder.path() + "/rules.json", "--latency", "constant:1ms",
                   "--port-file", port_file, "--seed", "7"});
  const std::string line = program.ReadLine();
  const auto address = ResolveAddress("127.0.0.1:" + std::to_string(PortIn(line)));
  ASSERT_TRUE(address.ok());
  EXPECT_NE(line.find("\"endpoint\":\"http://127.0.0.1:"), std::string::npos) << line;
  EXPECT_NE(line.find("\"control\":\"http://127.0.0.1:"), std::string::npos) << line;
  std::ifstream file(port_file);
  std::string in_file;
  std::getline(file, in_file);
  EXPECT_EQ(in_file, line);

  EXPECT_EQ(RawClient(*address).Get("/b/plain").body, "plain");
  RawClient idle(*address);
  RawClient stalled(*address);
  stalled.Write(GetText("/b/k"));
  while (!stalled.HasBytesNow()) std::this_thread::sleep_for(1ms);
  const auto asked = std::chrono::steady_clock::now();
  program.Terminate();
  ASSERT_TRUE(program.Wait(10s));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 1s);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_EQ(idle.Next(), RawReply::End::kFin);
}

TEST(Program, bad_usage_ends_with_252) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"--nonsense"},
        {"--root", "/no/such/folder"},
        {"--root", "/", "--upstream", "http://127.0.0.1:1"},
        {"--root", "/", "--latency", "soon"},
        {"--root", "/", "--listen", "127.0.0.1:99999"},
        {"--root", "/", "--listen", "127.0.0.1:http"},
        {"--root", "/", "--control", "127.0.0.1:-1"},
        {"--root", "/", "--log", "-1"},
        {"--root", "/", "--threads", "-1"},
        {"--root", "/", "--methods", "GTE"},
        {"--root", "/", "--rules", "/no/such/file"}}) {
    Program program(arguments);
    ASSERT_TRUE(program.Wait(10s));
    EXPECT_EQ(program.exit_code, 252);
  }
}

}  // namespace
}  // namespace forebay::faults
