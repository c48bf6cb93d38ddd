#include "sys/shared_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/shared_file.h"

namespace forebay::sys {
namespace {

constexpr int kTries = 16;

Status NotOurs(const std::string& path) {
  return Status(Code::kPermissionDenied,
                fmt::format("{} is not this user's own, or open to others", path));
}

bool IsOurs(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

}  // namespace

Result<SharedMemory> SharedMemory::Open(const std::string& runtime_dir, const std::string& name,
                                        size_t bytes) {
  SharedMemory memory;
  std::string path;
  FB_ASSIGN_OR_RETURN(memory.folder_, OpenSharedFolder(runtime_dir, &path));
  memory.name_ = fmt::format("{}-{}", name, bytes);
  memory.bytes_ = bytes;
  const std::string whole = path + "/" + memory.name_;
  for (int tries = 0; tries < kTries; ++tries) {
    Fd file(::openat(memory.folder_.get(), memory.name_.c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return ErrnoStatus(errno, "cannot open", whole);
    if (!IsOurs(file.get())) return NotOurs(whole);
    // The lock says that somebody uses it; it is held for moments only by whoever removes it.
    if (::flock(file.get(), LOCK_SH) != 0) return ErrnoStatus(errno, "cannot lock", whole);
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "cannot look at", whole);
    if (info.st_nlink == 0) continue;  // removed in between: another is there, or none
    // Every page for certain: one that is not to be had later would be a signal, not an error.
    const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    if (error != 0) return ErrnoStatus(error, "cannot size", whole);
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) return ErrnoStatus(errno, "cannot map", whole);
    memory.file_ = std::move(file);
    memory.data_ = data;
    return memory;
  }
  return Status(Code::kUnavailable, fmt::format("{} is removed again and again", whole));
}

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  ::munmap(data_, bytes_);
  // Nobody else holds the lock: nobody uses it.
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
    ::unlinkat(folder_.get(), name_.c_str(), 0);
  }
}

}  // namespace forebay::sys
