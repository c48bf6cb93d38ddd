#include "store/file/detail/local_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "store/file/file_store.h"

namespace forebay::store {
namespace {

constexpr uint64_t kChunkBytes = 4ULL << 20;  // between two looks at `cancelled`
constexpr std::string_view kDraftSuffix = ".forebay-tmp";
constexpr std::string_view kPartSuffix = ".forebay-part";
constexpr std::string_view kUploadSuffix = ".forebay-upload";

// No system call replaces a file only if it is still the one expected.
Status NoIfMatch() {
  return Status(Code::kUnimplemented, "files cannot be replaced on condition of their etag");
}

Status Cancelled() { return Status(Code::kCancelled, "the operation was cancelled"); }

std::string ParentOf(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == key.npos ? "" : key.substr(0, slash);
}

std::string NameOf(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == key.npos ? key : key.substr(slash + 1);
}

// Unlike any other made by a process that is alive; a leftover of a dead one costs a retry.
std::string UniqueName() {
  static std::atomic<uint64_t> counter{0};
  const auto now =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return fmt::format("{:016x}", DeriveKey(now, (sys::ProcessId() << 32) ^ ++counter));
}

Status ChangedStatus(const std::string& expected, const std::string& found) {
  return Status(
      Code::kPreconditionFailed,
      fmt::format("the object changed: expected etag \"{}\", found \"{}\"", expected, found));
}

Status WritePieces(const sys::Fd& file, const std::vector<ByteView>& pieces, uint64_t* offset,
                   const std::string& key, const std::atomic<bool>& cancelled) {
  for (ByteView piece : pieces) {
    while (!piece.empty()) {
      if (cancelled) return Cancelled();
      const ByteView chunk = piece.first(std::min<uint64_t>(piece.size(), kChunkBytes));
      FB_RETURN_IF_ERROR(sys::WriteAt(file, *offset, chunk, key));
      *offset += chunk.size();
      piece = piece.subspan(chunk.size());
    }
  }
  return {};
}

Status ReadPieces(const sys::Fd& file, ByteRange range, const std::vector<MutableBytes>& target,
                  const std::string& key, const std::atomic<bool>& cancelled) {
  uint64_t at = range.offset;
  for (MutableBytes piece : target) {
    while (!piece.empty() && at < range.end) {
      if (cancelled) return Cancelled();
      const uint64_t length = std::min({piece.size(), range.end - at, kChunkBytes});
      FB_RETURN_IF_ERROR(sys::ReadAt(file, at, piece.first(length), key));
      at += length;
      piece = piece.subspan(length);
    }
  }
  return {};
}

}  // namespace

bool IsPartialName(std::string_view name) {
  return name.ends_with(kDraftSuffix) || name.ends_with(kPartSuffix) ||
         name.ends_with(kUploadSuffix);
}

std::string EtagOf(const sys::FileInfo& info) {
  return fmt::format("{:x}-{:x}-{:x}", static_cast<uint64_t>(info.modified_ns), info.size,
                     info.inode);
}

Status CheckFileKey(const std::string& key) {
  const auto bad = [&key](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("key \"{}\" cannot be a file: {}", key, why));
  };
  if (key.empty()) return bad("it is empty");
  if (key.find('\0') != key.npos) return bad("it contains a NUL byte");
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = std::string_view(key).substr(begin, end - begin);
    if (segment.empty()) return bad("it begins or ends with '/' or contains \"//\"");
    if (segment == "." || segment == "..") return bad("\".\" and \"..\" are not names");
    if (segment.size() > 255) return bad("a name in it is longer than 255 bytes");
    if (IsPartialName(segment)) return bad("such names mark files that are not whole yet");
    begin = end + 1;
  }
  return {};
}

class LocalFiles::Draft {
 public:
  static Result<Draft> Make(sys::Fd folder, bool sync) {
    for (int tries = 0; tries < 100; ++tries) {
      std::string name = fmt::format(".{}{}", UniqueName(), kDraftSuffix);
      Result<sys::Fd> file = sys::CreateFile(folder, name);
      if (file.ok()) return Draft(std::move(folder), *std::move(file), std::move(name), sync);
      if (file.code() != Code::kPreconditionFailed) return std::move(file).status();
    }
    return Status(Code::kUnavailable, "no free temporary name");
  }
  Draft(Draft&&) noexcept = default;
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (file_.valid()) (void)sys::Remove(folder_, name_);  // best effort
  }

  const sys::Fd& file() const { return file_; }

  // Gives the file its name. `exclusive`: kPreconditionFailed when that is taken.
  Result<PutResult> Commit(const std::string& name, bool exclusive) {
    if (sync_) FB_RETURN_IF_ERROR(sys::SyncFile(file_, name));
    FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(file_, name));
    Status named = exclusive ? sys::Link(folder_, name_, name) : sys::Rename(folder_, name_, name);
    if (named.code() == Code::kPreconditionFailed) {
      return Status(Code::kPreconditionFailed, "the key exists already");
    }
    FB_RETURN_IF_ERROR(std::move(named));
    if (!exclusive) file_ = sys::Fd();  // nothing has the temporary name any more
    if (sync_) sys::SyncDirectory(folder_);
    return PutResult{.etag = EtagOf(info)};
  }

 private:
  Draft(sys::Fd folder, sys::Fd file, std::string name, bool sync)
      : folder_(std::move(folder)), file_(std::move(file)), name_(std::move(name)), sync_(sync) {}

  sys::Fd folder_;
  sys::Fd file_;
  std::string name_;
  bool sync_;
};

Result<std::unique_ptr<LocalFiles>> LocalFiles::Open(const std::string& root, bool beneath,
                                                     bool sync_writes, bool direct_reads) {
  FB_ASSIGN_OR_RETURN(sys::Fd fd, sys::OpenDirectory(root));
  return std::unique_ptr<LocalFiles>(
      new LocalFiles(std::move(fd), beneath, sync_writes, direct_reads));
}

Result<sys::Fd> LocalFiles::OpenFile(const std::string& key, sys::Open mode) const {
  if (const Status valid = CheckFileKey(key); !valid.ok()) {
    return Status(Code::kNotFound, "no such object: " + valid.message());
  }
  Result<sys::Fd> file = sys::OpenAt(root_, key, mode, beneath_);
  if (file.ok()) return file;
  if (file.code() != Code::kNotFound) return std::move(file).status();
  return Status(Code::kNotFound, "no such object");
}

Result<ReadResult> LocalFiles::Read(const ReadRequest& request,
                                    const std::atomic<bool>& cancelled) const {
  if (cancelled) return Cancelled();
  FB_ASSIGN_OR_RETURN(const sys::Fd file,
                      OpenFile(request.key, direct_reads_ ? sys::Open::kDirect : sys::Open::kRead));
  FB_ASSIGN_OR_RETURN(const sys::FileInfo before, sys::InfoOf(file, request.key));
  if (!before.regular) return Status(Code::kNotFound, "not a regular file");
  const std::string etag = EtagOf(before);
  if (!request.etag.empty() && request.etag != etag) return ChangedStatus(request.etag, etag);
  ByteRange range = request.range;
  if (request.clamp_to_object) {
    range.end = std::min(range.end, before.size);
    range.offset = std::min(range.offset, range.end);
  } else if (range.end > before.size) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the range reaches past the object's {} bytes", before.size));
  }
  Status status = ReadPieces(file, range, request.target, request.key, cancelled);
  if (status.code() == Code::kCancelled) return status;
  FB_ASSIGN_OR_RETURN(const sys::FileInfo after, sys::InfoOf(file, request.key));
  if (EtagOf(after) != etag) return ChangedStatus(etag, EtagOf(after));
  if (!status.ok()) return status;
  return ReadResult{
      .bytes = range.size(), .object_size = before.size, .etag = etag, .request_id = ""};
}

Result<ObjectInfo> LocalFiles::Head(const std::string& key) const {
  FB_ASSIGN_OR_RETURN(const sys::Fd file, OpenFile(key));
  FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(file, key));
  if (!info.regular) return Status(Code::kNotFound, "not a regular file");
  return ObjectInfo{.key = key,
                    .size = info.size,
                    .etag = EtagOf(info),
                    .modified_unix_s = info.modified_ns / 1'000'000'000};
}

Result<ListPage> LocalFiles::List(const ListRequest& request) const {
  return ListFiles(root_, beneath_, request);
}

Result<sys::Fd> LocalFiles::MakeParent(const std::string& key) const {
  FB_RETURN_IF_ERROR(CheckFileKey(key));
  return sys::MakeDirectories(root_, ParentOf(key), beneath_);
}

Result<PutResult> LocalFiles::Put(const PutRequest& request,
                                  const std::atomic<bool>& cancelled) const {
  if (cancelled) return Cancelled();
  if (!request.if_match.empty()) return NoIfMatch();
  FB_ASSIGN_OR_RETURN(sys::Fd folder, MakeParent(request.key));
  FB_ASSIGN_OR_RETURN(Draft draft, Draft::Make(std::move(folder), sync_writes_));
  uint64_t offset = 0;
  FB_RETURN_IF_ERROR(WritePieces(draft.file(), request.body, &offset, request.key, cancelled));
  return draft.Commit(NameOf(request.key), request.if_none_match);
}

Result<std::string> LocalFiles::CreateUpload(const UploadRequest& request) const {
  FB_ASSIGN_OR_RETURN(const sys::Fd folder, MakeParent(request.key));
  for (int tries = 0; tries < 100; ++tries) {
    std::string id = UniqueName();
    const Status made = sys::MakeDirectory(folder, fmt::format(".{}{}", id, kUploadSuffix));
    if (made.ok()) return id;
    if (made.code() != Code::kPreconditionFailed) return made;
  }
  return Status(Code::kUnavailable, "no free temporary name");
}

Result<sys::Fd> LocalFiles::OpenUpload(const std::string& key, const std::string& upload_id) const {
  FB_RETURN_IF_ERROR(CheckFileKey(key));
  const bool valid = !upload_id.empty() && std::ranges::all_of(upload_id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  const std::string parent = ParentOf(key);
  const std::string path =
      fmt::format("{}{}.{}{}", parent, parent.empty() ? "" : "/", upload_id, kUploadSuffix);
  Result<sys::Fd> folder = Status(Code::kNotFound, "");
  if (valid) folder = sys::OpenAt(root_, path, sys::Open::kFolder, beneath_);
  if (folder.code() != Code::kNotFound) return folder;
  return Status(Code::kNotFound, fmt::format("no such upload: {}", upload_id));
}

Result<PutResult> LocalFiles::PutPart(const PartRequest& request,
                                      const std::atomic<bool>& cancelled) const {
  if (request.part_number < 1 || request.part_number > 10'000) {
    return Status(Code::kInvalidArgument,
                  fmt::format("part number {} is not in 1 .. 10000", request.part_number));
  }
  FB_ASSIGN_OR_RETURN(sys::Fd parts, OpenUpload(request.key, request.upload_id));
  FB_ASSIGN_OR_RETURN(Draft draft, Draft::Make(std::move(parts), false));
  uint64_t offset = 0;
  FB_RETURN_IF_ERROR(WritePieces(draft.file(), request.body, &offset, request.key, cancelled));
  return draft.Commit(fmt::format("{}", request.part_number), false);
}

Result<PutResult> LocalFiles::AppendParts(const UploadRequest& request, const sys::Fd& parts,
                                          Draft& draft) const {
  std::vector<std::byte> buffer(kChunkBytes);
  uint64_t at = 0;
  for (size_t i = 0; i < request.part_etags.size(); ++i) {
    const std::string name = fmt::format("{}", i + 1);
    Result<sys::Fd> part = sys::OpenAt(parts, name, sys::Open::kRead, true);
    Result<sys::FileInfo> info =
        part.ok() ? sys::InfoOf(*part, name) : Result<sys::FileInfo>(part.status());
    if (!info.ok() || EtagOf(*info) != request.part_etags[i]) {
      return Status(Code::kInvalidArgument, fmt::format("part {} was not uploaded with etag \"{}\"",
                                                        name, request.part_etags[i]));
    }
    for (uint64_t offset = 0; offset < info->size;) {
      const MutableBytes chunk =
          MutableBytes(buffer).first(std::min<uint64_t>(buffer.size(), info->size - offset));
      FB_RETURN_IF_ERROR(sys::ReadAt(*part, offset, chunk, name));
      FB_RETURN_IF_ERROR(sys::WriteAt(draft.file(), at, chunk, name));
      offset += chunk.size();
      at += chunk.size();
    }
  }
  return draft.Commit(NameOf(request.key), request.if_none_match);
}

Result<PutResult> LocalFiles::CompleteUpload(const UploadRequest& request) const {
  FB_ASSIGN_OR_RETURN(const sys::Fd parts, OpenUpload(request.key, request.upload_id));
  if (request.part_etags.empty()) {
    return Status(Code::kInvalidArgument, "an upload needs parts");
  }
  if (!request.if_match.empty()) return NoIfMatch();
  FB_ASSIGN_OR_RETURN(sys::Fd folder, MakeParent(request.key));
  FB_ASSIGN_OR_RETURN(Draft draft, Draft::Make(std::move(folder), sync_writes_));
  FB_ASSIGN_OR_RETURN(PutResult result, AppendParts(request, parts, draft));
  RemoveUpload(request.key, request.upload_id);
  return result;
}

void LocalFiles::RemoveUpload(const std::string& key, const std::string& upload_id) const {
  Result<sys::Fd> parts = OpenUpload(key, upload_id);
  Result<sys::Fd> parent = sys::OpenAt(root_, ParentOf(key), sys::Open::kFolder, beneath_);
  if (!parts.ok() || !parent.ok()) return;
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ReadDirectory(*parts, key);
  if (!entries.ok()) return;
  // Best effort: what stays behind is hidden from listings.
  for (const sys::DirectoryEntry& entry : *entries) (void)sys::Remove(*parts, entry.name);
  (void)sys::RemoveDirectory(*parent, fmt::format(".{}{}", upload_id, kUploadSuffix));
}

Result<Unit> LocalFiles::AbortUpload(const UploadRequest& request) const {
  FB_RETURN_IF_ERROR(OpenUpload(request.key, request.upload_id).status());
  RemoveUpload(request.key, request.upload_id);
  return Unit{};
}

Result<Unit> LocalFiles::Delete(const std::string& key) const {
  if (!CheckFileKey(key).ok()) return Unit{};  // no such object
  Result<sys::Fd> parent = sys::OpenAt(root_, ParentOf(key), sys::Open::kFolder, beneath_);
  if (parent.code() == Code::kNotFound) return Unit{};
  FB_RETURN_IF_ERROR(parent.status());
  Status removed = sys::Remove(*parent, NameOf(key));
  // Neither a missing file nor a folder is an object.
  if (removed.code() == Code::kNotFound || removed.code() == Code::kInvalidArgument) return Unit{};
  FB_RETURN_IF_ERROR(std::move(removed));
  return Unit{};
}

}  // namespace forebay::store
