// Listings with S3's semantics: keys in byte order, a token that a later page goes on from.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "store/file/detail/local_files.h"
#include "store/file/file_store.h"

namespace forebay::store {
namespace {

// Beyond any sensible tree; each level costs a little stack.
constexpr int kMaxDepth = 256;

struct Entry {
  std::string name;  // of a folder: with its final '/', which is what byte order goes by
  bool folder = false;
  std::string why_not;  // it is a link that cannot be followed
};

class Lister {
 public:
  Lister(const sys::Fd& root, bool beneath, const ListRequest& request)
      : root_(root),
        beneath_(beneath),
        request_(request),
        after_(request.continuation_token.empty() ? request.start_after
                                                  : request.continuation_token),
        limit_(static_cast<size_t>(std::clamp(request.max_keys, 1, 1000))) {}

  Result<ListPage> Run() {
    const size_t slash = request_.prefix.rfind('/');
    const std::string base = slash == request_.prefix.npos ? "" : request_.prefix.substr(0, slash);
    const std::string begin = request_.prefix.substr(slash == request_.prefix.npos ? 0 : slash + 1);
    // No file has such a key, so nothing can begin with it.
    if (!base.empty() && !CheckFileKey(base).ok()) return ListPage{};
    Status status = Walk(base.empty() ? "" : base + "/", begin, 0);
    if (!status.ok()) return status;
    return std::move(page_);
  }

 private:
  // The entries of one folder that begin with `begin`, in byte order of their keys.
  Result<std::vector<Entry>> Entries(const std::string& folder, const std::string& begin,
                                     const sys::Fd& fd) {
    FB_ASSIGN_OR_RETURN(const std::vector<sys::DirectoryEntry> found,
                        sys::ReadDirectory(fd, folder));
    std::vector<Entry> entries;
    for (const sys::DirectoryEntry& entry : found) {
      if (!entry.name.starts_with(begin) && !(entry.name + "/").starts_with(begin)) continue;
      if (IsPartialName(entry.name)) continue;
      bool is_folder = entry.is_directory;
      std::string why_not;
      if (!entry.type_known) {
        Result<sys::FileInfo> info = Info(folder + entry.name);
        if (!info.ok() && !entry.is_symlink) continue;  // gone by now
        is_folder = info.ok() && info->directory;
        if (info.code() == Code::kNotFound) {
          why_not = "a link to nothing";
        } else if (!info.ok()) {
          why_not = fmt::format("a link that cannot be followed ({})", info.status().message());
        }
      }
      entries.push_back({.name = entry.name + (is_folder ? "/" : ""),
                         .folder = is_folder,
                         .why_not = std::move(why_not)});
    }
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
  }

  Result<sys::FileInfo> Info(const std::string& key) {
    FB_ASSIGN_OR_RETURN(const sys::Fd fd, sys::OpenAt(root_, key, sys::Open::kInfo, beneath_));
    return sys::InfoOf(fd, key);
  }

  // Opens a folder unless it is gone, or is one that the walk is inside already (a link's loop).
  Result<sys::Fd> Enter(const std::string& folder, int depth) {
    if (depth > kMaxDepth) {
      return Status(Code::kInvalidArgument, fmt::format("{} is nested too deeply", folder));
    }
    const std::string path = folder.empty() ? "" : folder.substr(0, folder.size() - 1);
    FB_ASSIGN_OR_RETURN(sys::Fd fd, sys::OpenAt(root_, path, sys::Open::kFolder, beneath_));
    FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(fd, folder));
    const std::pair id(info.device, info.inode);
    if (std::ranges::find(inside_, id) != inside_.end()) {
      Skip(path, "a link to a folder that it lies in");
      return Status(Code::kNotFound, "a link's loop");
    }
    inside_.push_back(id);
    return fd;
  }

  void Skip(const std::string& key, std::string why) {
    if (probing_ || key <= after_ || !MakeRoom(key)) return;
    page_.skipped.push_back({.key = key, .why = std::move(why)});
  }

  Status Walk(const std::string& folder, const std::string& begin, int depth) {
    Result<sys::Fd> fd = Enter(folder, depth);
    if (fd.code() == Code::kNotFound) return {};
    FB_RETURN_IF_ERROR(fd.status());
    Result<std::vector<Entry>> entries = Entries(folder, begin, *fd);
    Status status = entries.status();
    for (size_t i = 0; status.ok() && i < entries->size() && !full_; ++i) {
      const std::string key = folder + (*entries)[i].name;
      if (!key.starts_with(request_.prefix)) continue;
      if (!(*entries)[i].why_not.empty()) {
        Skip(key, std::move((*entries)[i].why_not));
        continue;
      }
      status = (*entries)[i].folder ? VisitFolder(key, depth) : VisitFile(key);
    }
    inside_.pop_back();
    if (status.code() == Code::kNotFound) return {};  // removed while we looked
    return status;
  }

  Status VisitFolder(const std::string& key, int depth) {
    const bool may_continue_inside = after_.starts_with(key);
    if (key < after_ && !may_continue_inside) return {};
    if (!probing_ && request_.delimiter == "/") {
      if (may_continue_inside) return {};
      // A folder is a common prefix only when there is a file in it.
      probing_ = true;
      found_ = false;
      Status status = Walk(key, "", depth + 1);
      probing_ = false;
      full_ = false;
      // One that may not be looked into is shown: whoever lists below it gets the error.
      if (status.code() == Code::kPermissionDenied) found_ = true;
      if (!status.ok() && !found_) return status;
      if (found_ && MakeRoom(key)) page_.common_prefixes.push_back(key);
      return {};
    }
    return Walk(key, "", depth + 1);
  }

  Status VisitFile(const std::string& key) {
    if (!after_.empty() && key <= after_ && !probing_) return {};
    Result<sys::FileInfo> info = Info(key);
    if (info.code() == Code::kNotFound) return {};  // removed while we looked
    if (info.code() == Code::kPermissionDenied) {
      Skip(key, info.status().message());
      return {};
    }
    FB_RETURN_IF_ERROR(info.status());
    if (!info->regular) {
      Skip(key, "neither a file nor a folder");
      return {};
    }
    if (probing_) {
      found_ = true;
      full_ = true;
      return {};
    }
    if (!MakeRoom(key)) return {};
    page_.objects.push_back({.key = key,
                             .size = info->size,
                             .etag = EtagOf(*info),
                             .modified_unix_s = info->modified_ns / 1'000'000'000});
    return {};
  }

  bool MakeRoom(const std::string& key) {
    if (page_.objects.size() + page_.common_prefixes.size() + page_.skipped.size() == limit_) {
      page_.next_token = last_;
      full_ = true;
      return false;
    }
    last_ = key;
    return true;
  }

  const sys::Fd& root_;
  bool beneath_;
  const ListRequest& request_;
  std::string after_;
  size_t limit_;
  ListPage page_;
  std::string last_;
  bool full_ = false;
  bool probing_ = false;  // looking for any file at all
  bool found_ = false;
  std::vector<std::pair<uint64_t, uint64_t>> inside_;
};

}  // namespace

Result<ListPage> ListFiles(const sys::Fd& root, bool beneath, const ListRequest& request) {
  if (!request.delimiter.empty() && request.delimiter != "/") {
    return Status(Code::kInvalidArgument, "the delimiter must be \"/\"");
  }
  return Lister(root, beneath, request).Run();
}

}  // namespace forebay::store
