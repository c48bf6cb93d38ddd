#include "sys/stream_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <initializer_list>
#include <string_view>

namespace forebay::sys {
namespace {

constexpr int kPollMs = 50;

// The descriptor that the path is another name of; -1 when it is none.
int DescriptorOf(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view number = path.substr(folder.size());
    int fd = -1;
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
    return error == std::errc() && rest == number.data() + number.size() ? fd : -1;
  }
  return -1;
}

Status Stopped() { return Status(Code::kCancelled, "the copy was stopped"); }

// Never waits in the kernel, where nothing could stop it.
Result<Fd> OpenNode(const std::string& path, bool waits_for_reader,
                    const std::function<bool()>& stop) {
  for (;;) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (fd.valid()) return fd;
    const int error = errno;
    if (stop()) return Stopped();
    if (error == ENXIO && waits_for_reader) {
      ::poll(nullptr, 0, kPollMs);
    } else if (error != EINTR) {
      return ErrnoStatus(error, "opening", path);
    }
  }
}

}  // namespace

bool StreamFile::IsOne(const std::string& path) {
  if (DescriptorOf(path) >= 0) return true;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return false;
  return !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Result<StreamFile> StreamFile::Open(const std::string& path, std::function<bool()> stop) {
  const int open_one = DescriptorOf(path);
  struct stat info{};
  if ((open_one >= 0 ? ::fstat(open_one, &info) : ::stat(path.c_str(), &info)) != 0) {
    return ErrnoStatus(errno, "opening", path);
  }
  if (open_one < 0) {
    if (S_ISSOCK(info.st_mode)) {
      return Status(Code::kInvalidArgument, fmt::format("{} is a socket", path));
    }
    FB_ASSIGN_OR_RETURN(Fd fd, OpenNode(path, S_ISFIFO(info.st_mode), stop));
    return StreamFile(std::move(fd), path, std::move(stop));
  }
  if (S_ISFIFO(info.st_mode)) {
    // Anew, so that its writes can be made not to wait without a change to those of others.
    Result<Fd> fd = OpenNode(path, false, stop);
    if (fd.ok()) return StreamFile(*std::move(fd), path, std::move(stop));
  }
  Fd fd(::fcntl(open_one, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "opening", path);
  return StreamFile(std::move(fd), path, std::move(stop));
}

Status StreamFile::Write(ByteView bytes) {
  while (!bytes.empty()) {
    if (stop_()) return Stopped();
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd room{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, kPollMs);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "writing", path_);
    }
  }
  return {};
}

}  // namespace forebay::sys
