#include "sys/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include "sys/fd.h"

namespace forebay::sys {
namespace {

constexpr std::chrono::milliseconds kTick(20);  // how soon a stop is noticed

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "making", "a pipe");
  return Pipe{.read = Fd(fds[0]), .write = Fd(fds[1])};
}

// A child as a program started by hand would be, no signal blocked or ignored, that does not
// outlive the thread that started it, and so not this process, however that dies. posix_spawn
// cannot say so. vfork, as that does it: fork would copy the page tables of a process that may hold
// hundreds of gigabytes. The child only calls the system, and says through a pipe why it could not
// become the program: sanitizers make vfork a fork, which shares no memory.
[[gnu::noinline]] Result<pid_t> Spawn(const std::vector<std::string>& argv, const Fd& output) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  char* const* const arguments = words.data();
  const int out = output.get();
  FB_ASSIGN_OR_RETURN(Pipe fault, MakePipe());
  const int fault_fd = fault.write.get();
  const pid_t parent = ::getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours runs in the child
  const pid_t child = ::vfork();                // NOLINT(bugprone-unsafe-functions)
  if (child == 0) {
    ::setpgid(0, 0);  // so that what it starts can be ended with it
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before that was said
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &usual, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int empty = ::open("/dev/null", O_RDONLY);
    if (::dup2(empty, 0) >= 0 && ::dup2(out, 1) >= 0) ::execvp(arguments[0], arguments);
    const int error = errno;
    (void)!::write(fault_fd, &error, sizeof error);
    ::_exit(127);
  }
  int failure = child < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fault.write = Fd();
  // Closed without a word: the program runs.
  while (child > 0 && ::read(fault.read.get(), &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  if (failure == 0) return child;
  int state = 0;
  while (child > 0 && ::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return ErrnoStatus(failure, "starting", argv[0]);
}

// The process groups that run now, where a handler of a signal finds them: each with whose they
// are, which a forked child is not; 0: a free place.
std::array<std::atomic<uint64_t>, 64> g_running;
std::atomic<bool> g_ending;  // what ends now was ended here, and its result means nothing
static_assert(std::atomic<uint64_t>::is_always_lock_free);

uint64_t OfThisProcess(pid_t group) {
  return static_cast<uint64_t>(::getpid()) << 32 | static_cast<uint32_t>(group);
}

// While one exists, its group ends with this process. One for which there is no place ends alone,
// as its parent's death signal says.
class Running {
 public:
  explicit Running(pid_t child) {
    static const int at_exit = std::atexit([] { EndRunningProcesses(); });
    (void)at_exit;
    for (std::atomic<uint64_t>& place : g_running) {
      uint64_t free = 0;
      if (!place.compare_exchange_strong(free, OfThisProcess(child))) continue;
      place_ = &place;
      return;
    }
  }
  ~Running() {
    if (place_ != nullptr) place_->store(0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<uint64_t>* place_ = nullptr;
};

// Reads to the end of the output. The child may have closed it and run on.
Status ReadAll(const Fd& from, Time until, size_t max_output, const std::atomic<bool>& stop,
               std::string& output) {
  std::array<char, 4096> buffer;
  for (;;) {
    if (stop) return Status(Code::kCancelled, "stopped");
    if (std::chrono::steady_clock::now() >= until) {
      return Status(Code::kDeadlineExceeded, "it did not end in time");
    }
    pollfd entry{.fd = from.get(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(kTick.count())) <= 0) continue;
    const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "reading", "its output");
    if (n == 0) return {};
    if (output.size() + static_cast<size_t>(n) > max_output) {
      return Status(Code::kResourceExhausted, "it says more than it may");
    }
    output.append(buffer.data(), static_cast<size_t>(n));
  }
}

Status WaitForEnd(pid_t child, Time until, const std::atomic<bool>& stop, int& state) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &state, WNOHANG);
    if (ended == child) return {};
    // Somebody else of this program has waited for it: its state is lost.
    if (ended < 0 && errno != EINTR) return ErrnoStatus(errno, "waiting for", "it");
    if (stop) return Status(Code::kCancelled, "stopped");
    if (std::chrono::steady_clock::now() >= until) {
      return Status(Code::kDeadlineExceeded, "it did not end in time");
    }
    std::this_thread::sleep_for(kTick / 10);
  }
}

}  // namespace

Result<ProcessResult> RunProcess(const std::vector<std::string>& argv, Duration limit,
                                 size_t max_output, const std::atomic<bool>& stop) {
  if (argv.empty()) return Status(Code::kInvalidArgument, "there is no program to run");
  const Time until = std::chrono::steady_clock::now() + limit;
  FB_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  FB_ASSIGN_OR_RETURN(const pid_t child, Spawn(argv, pipe.write));
  const Running running(child);
  pipe.write = Fd();
  ProcessResult result;
  int state = 0;
  Status status = ReadAll(pipe.read, until, max_output, stop, result.output);
  if (status.ok()) status = WaitForEnd(child, until, stop, state);
  if (status.ok() && g_ending) status = Status(Code::kCancelled, "this process ends");
  if (!status.ok()) {
    if (::kill(-child, SIGKILL) != 0) ::kill(child, SIGKILL);
    while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return std::move(status).WithContext(argv[0]);
  }
  result.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return result;
}

void EndRunningProcesses() {
  g_ending = true;
  for (const std::atomic<uint64_t>& place : g_running) {
    const uint64_t running = place.load();
    const auto group = static_cast<pid_t>(running & 0xffffffff);
    if (group > 0 && running == OfThisProcess(group)) ::kill(-group, SIGKILL);
  }
}

Result<std::vector<std::string>> SplitCommand(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // of a word, which may be empty: ''
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      const char next = command[++i];
      // Inside "..." it means something before " and \ alone.
      if (quote == '"' && next != '"' && next != '\\') word += c;
      word += next;
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (!blank) {
      word += c;
      inside = true;
    } else if (inside) {
      words.push_back(std::move(word));
      word.clear();
      inside = false;
    }
  }
  if (quote != 0) return Status(Code::kInvalidArgument, "a quote without its end");
  if (inside) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> EnvironmentStrings() {
  std::vector<std::string> all;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  std::ranges::sort(all);
  return all;
}

std::string CurrentFolder() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

}  // namespace forebay::sys
