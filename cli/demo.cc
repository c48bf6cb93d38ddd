// forebay demo: becomes `python -m forebay.demo`, with the Python that this command belongs to.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

// The first word of this process's command line: the path as it was called, links not resolved.
std::string CalledAs() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string line((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return line.substr(0, line.find('\0'));
}

bool IsProgram(const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; }

// FOREBAY_PYTHON, else the interpreter beside the command (a virtual environment has both), else
// the search path's.
std::string FindPython() {
  const char* named = std::getenv("FOREBAY_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  const std::filesystem::path called = CalledAs();
  if (called.has_parent_path() && IsProgram(called.parent_path() / "python")) {
    return called.parent_path() / "python";
  }
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (size_t begin = 0; !called.has_parent_path() && begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::filesystem::path folder = folders.substr(begin, end - begin);
    if (IsProgram(folder / called) && IsProgram(folder / "python")) return folder / "python";
    begin = end + 1;
  }
  return "python3";
}

class Demo : public Command {
 public:
  std::string name() const override { return "demo"; }
  std::string summary() const override {
    return "train from an embedded S3 server, with and without prefetch, and show the difference";
  }
  void Define(Flags& flags) override {
    flags.Option("--output", &output_, "folder for everything (default: forebay-demo)");
    flags.Choice("--size", &size_, {"270p", "720p"}, "of the pictures (default: 270p)");
    flags.Option("--scenes", &scenes_, "of seven cameras each (default: 24)");
    flags.Option("--runways", &runways_, "the fixed runways, seconds (default: as measured)");
    flags.Option("--memory-mib", &memory_mib_, "the loader's budget (default: 512)");
    flags.Option("--seed", &seed_, "of order and latencies (default: 7)");
    flags.Flag("--strict", &strict_, "exit 1 when a target is missed");
  }

  int Run(const Context& context) override {
    std::vector<std::string> words = {FindPython(), "-m", "forebay.demo"};
    const auto add = [&words](const char* flag, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {flag, value});
    };
    add("--output", output_);
    add("--size", size_);
    add("--runways", runways_);
    if (scenes_ > 0) add("--scenes", std::to_string(scenes_));
    if (memory_mib_ > 0) add("--memory-mib", std::to_string(memory_mib_));
    if (seed_ >= 0) add("--seed", std::to_string(seed_));
    if (strict_) words.emplace_back("--strict");
    if (context.globals.json) words.emplace_back("--json");
    if (context.globals.quiet) words.emplace_back("--quiet");
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    WriteErr(fmt::format("forebay demo: cannot run {}: {}\n", words[0], std::strerror(errno)));
    return kExitEnvironment;
  }

 private:
  std::string output_, size_, runways_;
  int64_t scenes_ = 0, memory_mib_ = 0, seed_ = -1;
  bool strict_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDemo() { return std::make_unique<Demo>(); }

}  // namespace forebay::cli
