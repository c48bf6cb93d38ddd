// Running another program and reading what it says.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/executor.h"
#include "forebay/status.h"

namespace forebay::sys {

struct ProcessResult {
  int exit_code = 0;   // 128 + the signal when one ended it
  std::string output;  // its stdout
};

// Runs argv[0], found through $PATH, and waits for its end; any thread. Its stdin is empty, its
// stderr is ours. Killed when it is still running after `limit` (kDeadlineExceeded), when `stop`
// has become true (kCancelled), or when it says more than `max_output` bytes (kResourceExhausted).
// kNotFound when it cannot be started. No message holds a part of the output.
Result<ProcessResult> RunProcess(const std::vector<std::string>& argv, Duration limit,
                                 size_t max_output, const std::atomic<bool>& stop);

// Kills what RunProcess runs at this moment, and all that it has started and that has not left its
// process group. Async-signal-safe: for the handler of a signal that ends this process. Done at
// exit() by itself.
void EndRunningProcesses();

// What a program that is run here sees of where it runs: NAME=VALUE of the environment, sorted, and
// the current folder, "" when it has gone.
std::vector<std::string> EnvironmentStrings();
std::string CurrentFolder();

// Splits a command line at blanks as a shell does: '...' and "..." keep them, \ the next character.
// Nothing is expanded. kInvalidArgument for a quote without its end.
Result<std::vector<std::string>> SplitCommand(const std::string& command);

}  // namespace forebay::sys
