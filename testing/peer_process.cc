#include "testing/peer_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace forebay::testing {
namespace {

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "peer: {}\n", why);
  std::exit(1);
}

}  // namespace

PeerProcess::PeerProcess(const std::string& command, const std::vector<std::string>& lines) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) Die("no pipe");
  ::signal(SIGPIPE, SIG_IGN);  // a peer that died is seen when its answer is read
  pid_ = ::fork();
  if (pid_ < 0) Die("no process");
  if (pid_ == 0) {
    ::dup2(to[0], STDIN_FILENO);
    ::dup2(from[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  to_ = ::fdopen(to[1], "w");
  from_ = ::fdopen(from[0], "r");
  for (const std::string& line : lines) fmt::print(to_, "{}\n", line);
  fmt::print(to_, "\n");
  std::fflush(to_);
  const std::string answer = ReadLine();
  if (!answer.starts_with("ready ")) Die("answered '" + answer + "'");
  version_ = answer.substr(6);
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);
  std::fclose(from_);
  ::waitpid(pid_, nullptr, 0);
}

double PeerProcess::Round() {
  fmt::print(to_, "go\n");
  std::fflush(to_);
  const std::string answer = ReadLine();
  const double seconds = std::atof(answer.c_str());
  if (seconds <= 0) Die("answered '" + answer + "'");
  return seconds;
}

std::string PeerProcess::ReadLine() {
  std::array<char, 256> line{};
  if (std::fgets(line.data(), line.size(), from_) == nullptr) Die("is gone");
  std::string text(line.data());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace forebay::testing
