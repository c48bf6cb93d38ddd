// A peer in a process of its own, which does the same work when it is told to.
//
// It gets one line a clip, "PATH FRAME FRAME ...", then an empty line, and answers "ready VERSION".
// For every line "go" it decodes all clips once, and answers with the CPU seconds that this took.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace forebay::testing {

class PeerProcess {
 public:
  // The shell runs `command`. `lines` are the clips.
  PeerProcess(const std::string& command, const std::vector<std::string>& lines);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const std::string& version() const { return version_; }
  // CPU seconds of one round.
  double Round();

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_;
};

}  // namespace forebay::testing
