// forebay-faults: see docs/faults.md.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "testing/faults/latency.h"
#include "testing/faults/server.h"

namespace forebay::faults {
namespace {

constexpr int kBadUsage = 252;
constexpr int kEnvironment = 253;

struct Flags {
  ServerOptions server;
  std::string latency;
  std::string rules_file;
  std::string port_file;
  std::vector<std::string> methods;
  uint64_t seed = 0;
};

int Fail(int code, std::string_view what) {
  fmt::print(stderr, "forebay-faults: {}\n", what);
  return code;
}

void AddFlags(CLI::App& app, Flags& flags) {
  auto& server = flags.server;
  app.add_option("--listen", server.listen, "HOST:PORT to serve on (port 0: a free one)")
      ->capture_default_str();
  auto* upstream =
      app.add_option("--upstream", server.upstream, "http://HOST:PORT to stand before");
  app.add_option("--root", server.root, "serve this folder instead: DIR/bucket/key")
      ->excludes(upstream);
  app.add_option("--latency", flags.latency,
                 "of the first byte: none | constant:50ms | uniform:10ms-90ms | "
                 "lognormal:median=130ms,p99=340ms");
  app.add_option("--methods", flags.methods, "methods that --latency applies to (default GET)")
      ->delimiter(',')
      ->check(CLI::IsMember({"GET", "HEAD", "PUT", "POST", "DELETE"}));
  app.add_option("--rules", flags.rules_file, "JSON file of faults");
  app.add_option("--seed", flags.seed, "of everything that is drawn")->capture_default_str();
  app.add_option("--control", server.control, "loopback HOST:PORT of the control port");
  app.add_option("--port-file", flags.port_file,
                 "also write the first line of stdout to this file");
  app.add_option("--threads", server.threads, "loops; 0: one per core, at most 8")
      ->check(CLI::Range(0, 1024));
  app.add_option("--log", server.log_limit, "requests kept in the log")
      ->check(CLI::Range(0, 1 << 28))
      ->capture_default_str();
  app.add_option("--idle-timeout", server.limits.idle_s, "seconds a connection may idle")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--upstream-timeout", server.limits.origin_s,
                 "seconds without an answer until 504")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.set_version_flag("--version", FOREBAY_VERSION);
}

// Flags win over the rules file.
Status FillPlan(const Flags& flags, bool seed_given, PlanSettings& plan) {
  if (!flags.rules_file.empty()) {
    std::ifstream file(flags.rules_file, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return {Code::kInvalidArgument, "cannot read " + flags.rules_file};
    FB_RETURN_IF_ERROR(ApplyRulesJson(text.str(), plan).WithContext(flags.rules_file));
  }
  if (!flags.latency.empty()) {
    FB_ASSIGN_OR_RETURN(plan.latency, ParseLatency(flags.latency));
  }
  if (!flags.methods.empty()) plan.methods = flags.methods;
  if (seed_given) plan.seed = flags.seed;
  return {};
}

// Two descriptors a connection, and two more while a large body is under way.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Readers see the whole line or no file.
bool WritePortFile(const std::string& path, const std::string& line) {
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  std::FILE* file = std::fopen(draft.c_str(), "we");
  if (file == nullptr) return false;
  const bool written = std::fputs(line.c_str(), file) >= 0;
  if (std::fclose(file) == 0 && written && std::rename(draft.c_str(), path.c_str()) == 0) {
    return true;
  }
  std::remove(draft.c_str());
  return false;
}

int Run(int argc, char** argv) {
  CLI::App app("An HTTP server with faults on demand, in front of an S3 endpoint or of a folder.",
               "forebay-faults");
  Flags flags;
  flags.server.threads = 0;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  if (flags.server.threads == 0) {
    flags.server.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  }
  const Status plan = FillPlan(flags, app.count("--seed") > 0, flags.server.plan);
  if (!plan.ok()) return Fail(kBadUsage, plan.ToString());

  // Blocked before any thread starts, so that only the wait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();

  auto server = Server::Start(flags.server);
  if (!server.ok()) {
    const bool usage = server.code() == Code::kInvalidArgument;
    return Fail(usage ? kBadUsage : kEnvironment, server.status().ToString());
  }
  const std::string line = (*server)->DescribeJson() + "\n";
  if (!flags.port_file.empty() && !WritePortFile(flags.port_file, line)) {
    return Fail(kEnvironment, "cannot write " + flags.port_file);
  }
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  int received = 0;
  ::sigwait(&signals, &received);
  return 0;
}

}  // namespace
}  // namespace forebay::faults

int main(int argc, char** argv) { return forebay::faults::Run(argc, argv); }
