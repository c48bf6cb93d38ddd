#include "sys/shared_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace forebay::sys {
namespace {

constexpr size_t kMaxBytes = 64 * 1024;
constexpr char kLockSuffix[] = ".lock";
constexpr char kNewSuffix[] = ".new";

// Whether an open file or folder is ours alone.
Status CheckOwn(const Fd& file, bool folder, const std::string& path) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "asking about", path);
  const char* fault = nullptr;
  if (folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) {
    fault = folder ? "it is no folder" : "it is no plain file";
  } else if (info.st_uid != ::geteuid()) {
    fault = "it belongs to another user";
  } else if ((info.st_mode & 077) != 0) {
    fault = "others may read or write it";
  } else if (!folder && info.st_nlink > 1) {
    fault = "it has a second name";
  }
  if (fault == nullptr) return {};
  return Status(Code::kPermissionDenied, fmt::format("{} is not used: {}", path, fault));
}

Result<Fd> OpenFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "making folder", path);
  }
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) {
    // What is there is a link or no folder.
    if (errno == ELOOP || errno == ENOTDIR) {
      return Status(Code::kPermissionDenied,
                    fmt::format("{} is not used: it is a link or no folder", path));
    }
    return ErrnoStatus(errno, "opening folder", path);
  }
  FB_RETURN_IF_ERROR(CheckOwn(folder, true, path));
  return folder;
}

}  // namespace

FileLock::~FileLock() {
  // Said aloud: a child forked meanwhile shares the open file, and would keep the lock.
  if (file_.valid()) ::flock(file_.get(), LOCK_UN);
}

Result<Fd> OpenSharedFolder(const std::string& runtime_dir, std::string* path) {
  std::vector<std::string> folders;
  if (!runtime_dir.empty()) folders.push_back(runtime_dir + "/forebay");
  folders.push_back(fmt::format("/dev/shm/forebay-{}", ::geteuid()));
  folders.push_back(fmt::format("/tmp/forebay-{}", ::geteuid()));
  Status failure;
  for (const std::string& one : folders) {
    Result<Fd> folder = OpenFolder(one);
    if (folder.ok()) {
      *path = one;
      return folder;
    }
    failure = std::move(folder).status();
    // Where somebody has laid something in our way, going elsewhere would hide it.
    if (failure.message().find("is not used") != std::string::npos) break;
  }
  return failure;
}

Result<SharedFile> SharedFile::Open(const std::string& runtime_dir, const std::string& name) {
  std::string path;
  FB_ASSIGN_OR_RETURN(Fd folder, OpenSharedFolder(runtime_dir, &path));
  return SharedFile(std::move(folder), std::move(path), name);
}

Result<Fd> SharedFile::OpenOwn(const std::string& name, int flags) const {
  Fd file(::openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  const std::string path = folder_path_ + "/" + name;
  if (!file.valid()) return ErrnoStatus(errno, "opening", path);
  FB_RETURN_IF_ERROR(CheckOwn(file, false, path));
  return file;
}

Result<std::string> SharedFile::Read() const {
  FB_ASSIGN_OR_RETURN(const Fd file, OpenOwn(name_, O_RDONLY));
  FB_ASSIGN_OR_RETURN(const FileInfo info, InfoOf(file, path()));
  if (info.size > kMaxBytes) {
    return Status(Code::kDataLoss, fmt::format("{} is too long", path()));
  }
  std::string text(info.size, '\0');
  FB_RETURN_IF_ERROR(ReadAt(file, 0, std::as_writable_bytes(std::span(text)), path()));
  return text;
}

Result<std::optional<FileLock>> SharedFile::TryLock() const {
  FB_ASSIGN_OR_RETURN(Fd file, OpenOwn(name_ + kLockSuffix, O_RDWR | O_CREAT));
  std::optional<FileLock> lock;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) lock.emplace(std::move(file));
  return lock;
}

Status SharedFile::Write(const FileLock&, std::string_view text) const {
  // One name, used by the lock's holder alone: what a killed process left there is overwritten.
  const std::string fresh = name_ + kNewSuffix;
  FB_ASSIGN_OR_RETURN(const Fd file, OpenOwn(fresh, O_RDWR | O_CREAT));
  FB_RETURN_IF_ERROR(Resize(file, 0, fresh));
  FB_RETURN_IF_ERROR(WriteAt(file, 0, AsBytes(text), fresh));
  return Rename(folder_, fresh, name_);
}

Status ReplacePrivateFile(const std::string& path, std::string_view text) {
  std::string fresh = path + ".XXXXXX";
  const Fd file(::mkostemp(fresh.data(), O_CLOEXEC));  // 0600
  if (!file.valid()) return ErrnoStatus(errno, "making", fresh);
  Status status = WriteAt(file, 0, AsBytes(text), fresh);
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "naming", path);
  }
  if (!status.ok()) ::unlink(fresh.c_str());
  return status;
}

}  // namespace forebay::sys
