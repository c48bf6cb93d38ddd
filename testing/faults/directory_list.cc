// Listing a tree of folders in the order of keys' bytes, from any key, in pages.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "testing/faults/directory.h"

namespace forebay::faults {
namespace {

constexpr int kMaxDepth = 64;

// A folder's name carries its slash: names then sort as the keys below them do.
using Names = std::vector<std::string>;

// Takes over `fd`.
Names ReadFolder(Fd fd) {
  Names names;
  DIR* stream = ::fdopendir(::dup(fd.get()));
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool folder = entry->d_type == DT_DIR;
    bool file = entry->d_type == DT_REG;
    if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
      struct stat info{};
      if (::fstatat(fd.get(), name.c_str(), &info, 0) != 0) continue;
      folder = S_ISDIR(info.st_mode) && entry->d_type != DT_LNK;  // links may form cycles
      file = S_ISREG(info.st_mode);
    }
    if (folder) name += '/';
    if (folder || file) names.push_back(std::move(name));
  }
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

class Walk {
 public:
  Walk(const Directory::ListQuery& query, Directory::ListResult& result)
      : query_(query), result_(result) {}

  // `key`: the keys of this folder begin with it. False: the page is full.
  bool Visit(Fd folder, const std::string& key, int depth) {
    const int fd = folder.get();
    for (const auto& name : ReadFolder(Fd(::dup(fd)))) {
      const std::string full = key + name;
      const bool is_folder = name.back() == '/';
      if (!CanMatch(full, is_folder)) continue;
      if (std::string prefix = CommonPrefix(full); !prefix.empty()) {
        if (prefix <= query_.after) continue;
        if (!result_.entries.empty() && result_.entries.back().key == prefix) continue;
        if (is_folder && !HoldsKey(fd, name, depth)) continue;
        if (!Add({.key = std::move(prefix), .is_prefix = true})) return false;
      } else if (is_folder) {
        Fd below(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (below.valid() && depth < kMaxDepth && !Visit(std::move(below), full, depth + 1)) {
          return false;
        }
      } else if (full > query_.after && !AddFile(fd, name, full)) {
        return false;
      }
    }
    return true;
  }

 private:
  // Whether `full`, or a key below it, can have the prefix and lie after the start.
  bool CanMatch(std::string_view full, bool is_folder) const {
    const std::string_view prefix = query_.prefix;
    const bool has_prefix = full.starts_with(prefix) || (is_folder && prefix.starts_with(full));
    if (!has_prefix) return false;
    if (!is_folder) return full > query_.after;
    return full > query_.after || std::string_view(query_.after).starts_with(full);
  }
  // Of a key, or of all keys below a folder; "" when they are not rolled up here.
  std::string CommonPrefix(const std::string& full) const {
    if (query_.delimiter.empty() || full.size() < query_.prefix.size()) return {};
    const size_t at = full.find(query_.delimiter, query_.prefix.size());
    if (at == std::string::npos) return {};
    return full.substr(0, at + query_.delimiter.size());
  }
  // Empty folders are no keys.
  static bool HoldsKey(int fd, const std::string& name, int depth) {
    Fd below(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!below.valid() || depth >= kMaxDepth) return false;
    const int below_fd = below.get();
    const Names names = ReadFolder(Fd(::dup(below_fd)));
    return std::any_of(names.begin(), names.end(), [&](const std::string& n) {
      return n.back() != '/' || HoldsKey(below_fd, n, depth + 1);
    });
  }
  bool AddFile(int fd, const std::string& name, const std::string& full) {
    struct stat info{};
    if (::fstatat(fd, name.c_str(), &info, 0) != 0) return true;  // gone meanwhile
    return Add({.key = full,
                .size = static_cast<uint64_t>(info.st_size),
                .modified_s = info.st_mtim.tv_sec,
                .etag = Directory::EtagOf(info)});
  }
  bool Add(Directory::Entry entry) {
    if (result_.entries.size() >= query_.limit) {
      result_.truncated = query_.limit > 0;
      return false;
    }
    result_.entries.push_back(std::move(entry));
    return true;
  }

  const Directory::ListQuery& query_;
  Directory::ListResult& result_;
};

}  // namespace

Result<Directory::ListResult> Directory::List(const std::string& bucket,
                                              const ListQuery& query) const {
  FB_ASSIGN_OR_RETURN(Fd folder, OpenBelow(bucket, O_RDONLY | O_DIRECTORY));
  ListResult result;
  Walk(query, result).Visit(std::move(folder), "", 0);
  return result;
}

}  // namespace forebay::faults
