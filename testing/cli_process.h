// The real program as a child process, with folders and the fault server for it to talk to.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
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

#include "testing/temp_folder.h"

namespace forebay::testing {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Six frames of 32x32, ten a second.
inline constexpr char kVideo[] = FOREBAY_SOURCE "/fuzz/corpus/scan/h264.mp4";

using Args = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void WriteFile(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string Noise(size_t size) {
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
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment) {
      settings.push_back(fmt::format("{}={}", name, value));
    }
    std::vector<char*> envp;
    envp.reserve(settings.size() + 1);
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

  pid_t pid() const { return pid_; }
  void Kill(int signal) const { ::kill(pid_, signal); }
  // Until it has a connection, or is making one.
  void WaitForSocket() const {
    const fs::path fds = "/proc/" + std::to_string(pid_) + "/fd";
    for (int i = 0; i < 10'000; ++i) {
      std::error_code gone;
      for (const auto& entry : fs::directory_iterator(fds, gone)) {
        if (fs::read_symlink(entry.path(), gone).string().starts_with("socket:")) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "it has asked nobody";
  }
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
    environment_["AWS_EC2_METADATA_DISABLED"] = "true";
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
  // Serves `folder`, each GET after `latency`, some as `rules` say; sets the endpoint of what is
  // run later.
  void ServeFolder(const std::string& folder, const std::string& latency,
                   const std::string& rules = "") {
    const char* program = std::getenv("FOREBAY_FAULTS");
    ASSERT_NE(program, nullptr) << "FOREBAY_FAULTS names the fault server; ctest sets it";
    const std::string port_file = folder_ / "port";
    fs::remove(port_file);
    Args args = {"--root", folder, "--latency", "constant:" + latency, "--port-file", port_file};
    if (!rules.empty()) args.insert(args.end(), {"--rules", rules});
    server_ = std::make_unique<Process>(program, args, environment_, folder_ / "faults");
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

// The number after "name": in a line of JSON.
inline double NumberOf(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\":");
  EXPECT_NE(at, std::string::npos) << name << " in " << json;
  return at == std::string::npos ? -1 : std::strtod(json.c_str() + at + name.size() + 3, nullptr);
}

}  // namespace forebay::testing
