// What a subcommand is. Each lives in a file of its own, with a Make function that main.cc lists;
// it includes this header and include/forebay, never the option parser.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/options.h"
#include "forebay/status.h"
#include "forebay/store.h"

namespace forebay::cli {

// Exit codes: stable, because job schedulers route on them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;   // at least one object or sample of many
inline constexpr int kExitSkipped = 2;  // something was skipped
inline constexpr int kExitAgain = 75;   // throttled or interrupted: the same command resumes
inline constexpr int kExitUsage = 252;
inline constexpr int kExitEnvironment =
    253;  // credentials, configuration, an endpoint that does not answer
inline constexpr int kExitService = 254;  // the service answered with an error
inline constexpr int kExitOther = 255;

// The exit code of a command that failed as a whole with `status`.
int ExitCodeFor(const Status& status);

// The flags that every command has.
struct GlobalOptions {
  StoreOptions store;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
  bool no_color = false;
  std::string log = "warn";
};

// Declares the arguments of one command. Names: "uri" (positional), "--range", "-r,--recursive".
// The pointed-to value holds the default and must live as long as the command.
class Flags {
 public:
  virtual ~Flags() = default;
  virtual void Argument(const std::string& name, std::string* value, const std::string& help) = 0;
  virtual void OptionalArgument(const std::string& name, std::string* value,
                                const std::string& help) = 0;
  // At least one.
  virtual void Arguments(const std::string& name, std::vector<std::string>* values,
                         const std::string& help) = 0;
  virtual void Option(const std::string& name, std::string* value, const std::string& help) = 0;
  // May be given several times.
  virtual void Options(const std::string& name, std::vector<std::string>* values,
                       const std::string& help) = 0;
  virtual void Option(const std::string& name, int64_t* value, const std::string& help) = 0;
  virtual void Option(const std::string& name, uint64_t* value, const std::string& help) = 0;
  virtual void Option(const std::string& name, double* value, const std::string& help) = 0;
  // One of `choices`.
  virtual void Choice(const std::string& name, std::string* value,
                      const std::vector<std::string>& choices, const std::string& help) = 0;
  // "8MiB", "500 KB", "1048576".
  virtual void Size(const std::string& name, uint64_t* value, const std::string& help) = 0;
  virtual void Flag(const std::string& name, bool* value, const std::string& help) = 0;
};

// What a running command gets.
struct Context {
  const GlobalOptions& globals;
  std::string command;

  // Reports `status` on stderr ("forebay cp: ...") and gives the exit code.
  int Fail(const Status& status) const;
  // As Fail, for what went wrong with one object's content: 1 when that cannot be used (no video,
  // damaged), although it was found and read.
  int FailObject(const Status& status) const;
  int FailUsage(std::string_view message) const;
  // A note on stderr, unless --quiet.
  void Note(std::string_view text) const;
  // Reports and returns null when the options or the environment are wrong (exit code 253).
  std::unique_ptr<Store> OpenStore() const;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  virtual void Define(Flags& flags) = 0;
  // The exit code.
  virtual int Run(const Context& context) = 0;
};

using CommandList = std::vector<std::unique_ptr<Command>>;

// Parses, runs, and returns the exit code.
int RunApp(int argc, char** argv, CommandList commands);

std::unique_ptr<Command> MakeBench();
std::unique_ptr<Command> MakeCat();
std::unique_ptr<Command> MakeCp();
std::unique_ptr<Command> MakeDemo();
std::unique_ptr<Command> MakeDoctor();
std::unique_ptr<Command> MakeFrames();
std::unique_ptr<Command> MakeIndex();
std::unique_ptr<Command> MakeInspect();
std::unique_ptr<Command> MakeLs();
std::unique_ptr<Command> MakeMerge();
std::unique_ptr<Command> MakeOrder();
std::unique_ptr<Command> MakePack();
std::unique_ptr<Command> MakeStat();

}  // namespace forebay::cli
