// Files: owned descriptors, and the few calls that storage on a file system needs. Blocking; any
// thread. Failures carry the path and the system's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/executor.h"
#include "forebay/status.h"

namespace forebay::sys {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The Status of a failed call: kNotFound, kPermissionDenied, kInvalidArgument (a name that cannot
// be), kResourceExhausted (disk full, too many files), kUnavailable (anything else, as EIO).
Status ErrnoStatus(int error, std::string_view what, std::string_view path);

struct FileInfo {
  uint64_t size = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;
  uint64_t device = 0;
  bool regular = false;
  bool directory = false;
  friend bool operator==(const FileInfo&, const FileInfo&) = default;
};

// What a file is opened for.
enum class Open : uint8_t {
  kRead,    // never waits, as opening a FIFO would
  kDirect,  // the same, past the page cache (O_DIRECT): offsets, lengths and memory by 4 KiB
  kFolder,  // to open and name things in it
  kInfo,    // for InfoOf alone; needs no permission on the file
  kCreate,  // to read and write, made when missing; never through a link
};

// Opens `path` (relative, no leading '/') below the directory `root`. `beneath`: no symlink, ".."
// or mount trick may lead out of `root` (kPermissionDenied); else links are followed freely.
Result<Fd> OpenAt(const Fd& root, const std::string& path, Open mode, bool beneath);
Result<Fd> OpenDirectory(const std::string& path);
// A new file, to read and write. kPreconditionFailed when the name is taken.
Result<Fd> CreateFile(const Fd& folder, const std::string& name);
// kPreconditionFailed when the name is taken.
Status MakeDirectory(const Fd& folder, const std::string& name);
// Replaces what is at `to`.
Status Rename(const Fd& folder, const std::string& from, const std::string& to);
// Gives a file a second name; kPreconditionFailed when that is taken.
Status Link(const Fd& folder, const std::string& from, const std::string& to);
// Unlinks a file. kNotFound when there is none, kInvalidArgument for a folder.
Status Remove(const Fd& folder, const std::string& name);
Status RemoveDirectory(const Fd& folder, const std::string& name);
Result<FileInfo> InfoOf(const Fd& file, std::string_view path);
Result<FileInfo> InfoOfPath(const std::string& path);  // of what a link leads to
// Whether `name` is a symbolic link, wherever it leads.
bool IsLink(const Fd& folder, const std::string& name);
// What the symbolic link `path` leads to in the end; any other path as it is. kNotFound: to
// nothing.
Result<std::string> FollowLink(const std::string& path);
// Makes the directories of `path` ("a/b/c") that are missing and opens the last.
Result<Fd> MakeDirectories(const Fd& root, const std::string& path, bool beneath);

// Exactly into.size() bytes; fewer (end of file) are kDataLoss.
Status ReadAt(const Fd& file, uint64_t offset, MutableBytes into, std::string_view path);
Status WriteAt(const Fd& file, uint64_t offset, ByteView bytes, std::string_view path);
Status SyncFile(const Fd& file, std::string_view path);
// Makes the names in a folder durable, where the file system can.
void SyncDirectory(const Fd& folder);
Status Resize(const Fd& file, uint64_t size, std::string_view path);
// An exclusive lock on the open file, of this process and machine; false: another has it, and kept
// it for as long as `wait`.
bool LockWithin(const Fd& file, Duration wait);
// A small note kept with the file ("user.forebay.copy"). False, "": the file system has none.
bool SetAttribute(const Fd& file, const char* name, std::string_view value);
std::string GetAttribute(const Fd& file, const char* name);
// Changes at every start of the machine.
std::string BootId();
uint64_t ProcessId();

struct DirectoryEntry {
  std::string name;
  bool is_symlink = false;
  bool is_directory = false;
  bool type_known = true;  // else ask InfoOf
};

// All but "." and "..", unsorted.
Result<std::vector<DirectoryEntry>> ReadDirectory(const Fd& directory, std::string_view path);

}  // namespace forebay::sys
