// Small files through which the processes of one user on one machine share what one of them has
// found out, so that the others need not ask for it. They are the user's own and closed to
// everybody else, or they are not used at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "forebay/status.h"
#include "sys/fd.h"

namespace forebay::sys {

// The user's folder for them: `runtime_dir`/forebay when `runtime_dir` is given (what
// $XDG_RUNTIME_DIR says), else /dev/shm/forebay-UID, which is never on a disk, else
// /tmp/forebay-UID. Made when missing; `path` is where it is. kPermissionDenied when it is a link,
// another user's, or open to others.
Result<Fd> OpenSharedFolder(const std::string& runtime_dir, std::string* path);

// Held by one process, and one holder in it, at a time. Let go when destroyed, also when the
// process dies.
class FileLock {
 public:
  explicit FileLock(Fd file) : file_(std::move(file)) {}
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = default;
  ~FileLock();

 private:
  Fd file_;
};

class SharedFile {
 public:
  // The file `name` (no slash in it) in the shared folder; its errors.
  static Result<SharedFile> Open(const std::string& runtime_dir, const std::string& name);

  // The whole text. kNotFound: there is none yet; kPermissionDenied as for the folder; kDataLoss:
  // too long to be one of ours.
  Result<std::string> Read() const;
  // None while another holds it. Never waits. kPermissionDenied as for the folder.
  Result<std::optional<FileLock>> TryLock() const;
  // Replaces the text, whole or not at all, for the holder of the lock.
  Status Write(const FileLock& lock, std::string_view text) const;

  std::string path() const { return folder_path_ + "/" + name_; }

 private:
  SharedFile(Fd folder, std::string folder_path, std::string name)
      : folder_(std::move(folder)), folder_path_(std::move(folder_path)), name_(std::move(name)) {}
  Result<Fd> OpenOwn(const std::string& name, int flags) const;

  Fd folder_;
  std::string folder_path_;
  std::string name_;
};

// Replaces a file anywhere by one that is closed to others, whole or not at all.
Status ReplacePrivateFile(const std::string& path, std::string_view text);

}  // namespace forebay::sys
