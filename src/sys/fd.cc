#include "sys/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

namespace forebay::sys {
namespace {

Code CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV:  // openat2: leads out of the root
    case ELOOP:
      return Code::kPermissionDenied;
    case ENAMETOOLONG:
    case EISDIR:
    case EINVAL:
    case EILSEQ:
    case ENOTEMPTY:
      return Code::kInvalidArgument;
    case EEXIST:
      return Code::kPreconditionFailed;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    default:
      return Code::kUnavailable;
  }
}

// Without openat2 (kernels before 5.6, some sandboxes): one component at a time, and no symlink at
// all.
int OpenWithoutLinks(int root, const std::string& path, int flags, mode_t mode) {
  Fd held;
  int at = root;
  size_t begin = 0;
  for (;;) {
    const size_t slash = path.find('/', begin);
    const std::string name = path.substr(begin, slash - begin);
    if (name == "..") {
      errno = EXDEV;
      return -1;
    }
    if (slash == path.npos) {
      return ::openat(at, name.empty() ? "." : name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    if (!name.empty()) {
      Fd next(::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.valid()) return -1;
      held = std::move(next);
      at = held.get();
    }
    begin = slash + 1;
  }
}

int OpenBeneath(int root, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (fd >= 0) return static_cast<int>(fd);
  if (errno != ENOSYS && errno != EPERM && errno != EAGAIN) return -1;
  return OpenWithoutLinks(root, path, flags, mode);
}

int FlagsOf(Open mode) {
  switch (mode) {
    case Open::kRead:
      return O_RDONLY | O_NONBLOCK;
    case Open::kDirect:
      return O_RDONLY | O_NONBLOCK | O_DIRECT;
    case Open::kFolder:
      return O_PATH | O_DIRECTORY;
    case Open::kInfo:
      return O_PATH;
    case Open::kCreate:
      return O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  }
  return O_RDONLY;
}

FileInfo InfoFrom(const struct stat& info) {
  return {.size = static_cast<uint64_t>(info.st_size),
          .modified_ns =
              static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec,
          .inode = info.st_ino,
          .device = info.st_dev,
          .regular = S_ISREG(info.st_mode),
          .directory = S_ISDIR(info.st_mode)};
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Status ErrnoStatus(int error, std::string_view what, std::string_view path) {
  return Status(CodeOf(error),
                fmt::format("{} {}: {}", what, path,
                            std::error_code(error, std::system_category()).message()));
}

Result<Fd> OpenAt(const Fd& root, const std::string& path, Open mode, bool beneath) {
  const std::string name = path.empty() ? "." : path;
  const int flags = FlagsOf(mode);
  int fd = -1;
  do {
    fd = beneath ? OpenBeneath(root.get(), name, flags, 0666)
                 : ::openat(root.get(), name.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return ErrnoStatus(errno, "opening", path);
  return Fd(fd);
}

bool IsLink(const Fd& folder, const std::string& name) {
  struct stat info{};
  return ::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(info.st_mode);
}

Result<std::string> FollowLink(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) return path;
  std::string end = std::filesystem::canonical(path, error).string();
  if (error) return ErrnoStatus(error.value(), "following the link", path);
  return end;
}

Result<Fd> OpenDirectory(const std::string& path) {
  Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "opening folder", path);
  return fd;
}

Result<Fd> CreateFile(const Fd& folder, const std::string& name) {
  Fd fd(::openat(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return ErrnoStatus(errno, "making", name);
  return fd;
}

Status MakeDirectory(const Fd& folder, const std::string& name) {
  if (::mkdirat(folder.get(), name.c_str(), 0777) == 0) return {};
  return ErrnoStatus(errno, "making folder", name);
}

Status Rename(const Fd& folder, const std::string& from, const std::string& to) {
  if (::renameat(folder.get(), from.c_str(), folder.get(), to.c_str()) == 0) return {};
  return ErrnoStatus(errno, "naming", to);
}

Status Link(const Fd& folder, const std::string& from, const std::string& to) {
  if (::linkat(folder.get(), from.c_str(), folder.get(), to.c_str(), 0) == 0) return {};
  return ErrnoStatus(errno, "naming", to);
}

Status Remove(const Fd& folder, const std::string& name) {
  if (::unlinkat(folder.get(), name.c_str(), 0) == 0) return {};
  return ErrnoStatus(errno, "removing", name);
}

Status RemoveDirectory(const Fd& folder, const std::string& name) {
  if (::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  return ErrnoStatus(errno, "removing folder", name);
}

Result<FileInfo> InfoOf(const Fd& file, std::string_view path) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "asking about", path);
  return InfoFrom(info);
}

Result<FileInfo> InfoOfPath(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "asking about", path);
  return InfoFrom(info);
}

Result<Fd> MakeDirectories(const Fd& root, const std::string& path, bool beneath) {
  Result<Fd> all = OpenAt(root, path, Open::kFolder, beneath);
  if (all.ok() || path.empty() || all.code() != Code::kNotFound) return all;
  const size_t slash = path.rfind('/');
  const std::string parent = slash == path.npos ? "" : path.substr(0, slash);
  FB_ASSIGN_OR_RETURN(const Fd above, MakeDirectories(root, parent, beneath));
  const std::string name = slash == path.npos ? path : path.substr(slash + 1);
  const Status status = MakeDirectory(above, name);
  if (!status.ok() && status.code() != Code::kPreconditionFailed) return status;
  Result<Fd> made = OpenAt(root, path, Open::kFolder, beneath);
  if (made.code() != Code::kNotFound) return made;
  return Status(Code::kInvalidArgument,
                fmt::format("{} cannot be a folder: a file or a dangling link is there", path));
}

Status ReadAt(const Fd& file, uint64_t offset, MutableBytes into, std::string_view path) {
  while (!into.empty()) {
    const ssize_t n = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "reading", path);
    if (n == 0) {
      return Status(Code::kDataLoss, fmt::format("{} ends at byte {}", path, offset));
    }
    into = into.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status WriteAt(const Fd& file, uint64_t offset, ByteView bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "writing", path);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status SyncFile(const Fd& file, std::string_view path) {
  if (::fsync(file.get()) != 0) return ErrnoStatus(errno, "syncing", path);
  return {};
}

void SyncDirectory(const Fd& folder) {
  const Fd readable(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (readable.valid()) (void)::fsync(readable.get());
}

Status Resize(const Fd& file, uint64_t size, std::string_view path) {
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoStatus(errno, "sizing", path);
  }
  return {};
}

bool LockWithin(const Fd& file, Duration wait) {
  // flock itself can only wait without an end.
  constexpr auto kInterval = std::chrono::milliseconds(10);
  const auto give_up = std::chrono::steady_clock::now() + wait;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= give_up) return false;
    std::this_thread::sleep_for(kInterval);
  }
  return true;
}

bool SetAttribute(const Fd& file, const char* name, std::string_view value) {
  return ::fsetxattr(file.get(), name, value.data(), value.size(), 0) == 0;
}

std::string GetAttribute(const Fd& file, const char* name) {
  std::array<char, 256> text{};
  const ssize_t size = ::fgetxattr(file.get(), name, text.data(), text.size());
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

std::string BootId() {
  std::array<char, 64> text{};
  const Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  std::string id(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  std::erase(id, '\n');
  return id;
}

uint64_t ProcessId() { return static_cast<uint64_t>(::getpid()); }

Result<std::vector<DirectoryEntry>> ReadDirectory(const Fd& directory, std::string_view path) {
  // fdopendir wants a descriptor that can be read, which O_PATH's cannot.
  const int fd = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "listing", path);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (!stream) {
    const Status status = ErrnoStatus(errno, "listing", path);
    ::close(fd);
    return status;
  }
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({.name = std::string(name),
                       .is_symlink = entry->d_type == DT_LNK,
                       .is_directory = entry->d_type == DT_DIR,
                       .type_known = entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK});
  }
  if (errno != 0) return ErrnoStatus(errno, "listing", path);
  return entries;
}

}  // namespace forebay::sys
