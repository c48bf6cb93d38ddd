#include "sys/small_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/fd.h"

namespace forebay::sys {
namespace {

Status Failed(const std::string& path, int error) {
  const Code code = error == EACCES || error == EPERM ? Code::kPermissionDenied : Code::kInternal;
  return Status(code, fmt::format("{} cannot be read: {}", path, std::strerror(error)));
}

}  // namespace

Result<std::optional<std::string>> ReadSmallFile(const std::string& path, size_t limit) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return Failed(path, errno);
  }
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) return Failed(path, errno);
  if (S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3)) return std::optional(std::string());
  if (!S_ISREG(about.st_mode)) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} is {}", path, S_ISDIR(about.st_mode) ? "a folder" : "no regular file"));
  }
  std::string text;
  char piece[4096];
  while (true) {
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(path, errno);
    if (n == 0) return std::optional<std::string>(std::move(text));
    text.append(piece, static_cast<size_t>(n));
    if (text.size() > limit) {
      return Status(Code::kResourceExhausted, fmt::format("{} is over {} bytes", path, limit));
    }
  }
}

}  // namespace forebay::sys
