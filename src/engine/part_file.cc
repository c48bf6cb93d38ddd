#include "engine/part_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/random.h"

namespace forebay::engine {
namespace {

constexpr std::string_view kSuffix = ".forebay-part";
constexpr size_t kHeaderBytes = 4096;
constexpr uint8_t kDone = 1;
// For a short copy to end, and for one that was killed, which holds its lock until the kernel has
// taken it apart, buffers and all.
constexpr auto kLockWait = std::chrono::seconds(3);
constexpr int kOpenAttempts = 100;
constexpr const char* kCopyAttribute = "user.forebay.copy";

std::string PartName(const std::string& name) {
  if (name.size() + kSuffix.size() <= 255) return name + std::string(kSuffix);
  return fmt::format("{}-{:016x}{}", name.substr(0, 200), HashName(name), kSuffix);
}

// What a finished copy remembers: of what it is one, and how the file looked.
std::string CopyMark(const PartSource& source, const sys::FileInfo& info) {
  return fmt::format("1 {:016x} {} {} {}", HashName(source.uri + '\n' + source.etag), source.size,
                     info.modified_ns, info.inode);
}

}  // namespace

PartFile::PartFile(sys::Fd folder, std::string name, PartSource source, uint64_t part_bytes)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      part_name_(PartName(name_)),
      source_(std::move(source)),
      part_bytes_(part_bytes),
      done_((source_.size + part_bytes - 1) / part_bytes) {
  const uint64_t header_offset = (source_.size + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
  marks_offset_ = header_offset + kHeaderBytes;
}

Result<std::unique_ptr<PartFile>> PartFile::Open(sys::Fd folder, const std::string& name,
                                                 const PartSource& source, uint64_t part_bytes) {
  std::unique_ptr<PartFile> part(new PartFile(std::move(folder), name, source, part_bytes));
  for (int i = 0; i < kOpenAttempts; ++i) {
    FB_ASSIGN_OR_RETURN(const bool locked, part->OpenLocked());
    if (!locked) {
      // Another copy finished, and renamed it, between our open and our lock.
      if (IsCopyOf(part->folder_, name, source)) return nullptr;
      continue;
    }
    FB_RETURN_IF_ERROR(part->Prepare());
    return part;
  }
  return Status(Code::kUnavailable, fmt::format("other copies write {} all the time", name));
}

Result<bool> PartFile::OpenLocked() {
  FB_ASSIGN_OR_RETURN(file_, sys::OpenAt(folder_, part_name_, sys::Open::kCreate, false));
  if (!sys::LockWithin(file_, kLockWait)) {
    return Status(Code::kUnavailable,
                  fmt::format("{} is being written by another copy", part_name_));
  }
  const Result<sys::Fd> again = sys::OpenAt(folder_, part_name_, sys::Open::kInfo, false);
  if (again.code() == Code::kNotFound) return false;
  FB_RETURN_IF_ERROR(again.status());
  FB_ASSIGN_OR_RETURN(const sys::FileInfo named, sys::InfoOf(*again, name_));
  FB_ASSIGN_OR_RETURN(const sys::FileInfo opened, sys::InfoOf(file_, name_));
  return named.inode == opened.inode;
}

std::string PartFile::Header() const {
  std::string text = fmt::format("forebay-part 1\n{}\n{}\n{}\n{}\n{}\n", source_.size, part_bytes_,
                                 sys::BootId(), source_.etag, source_.uri);
  // Longer than any key, but the header has a size: then it is told apart by its hash.
  if (text.size() > kHeaderBytes) text = fmt::format("forebay-part 1\n{:016x}\n", HashName(text));
  text.resize(kHeaderBytes, '\0');
  return text;
}

Status PartFile::Prepare() {
  const std::string header = Header();
  const uint64_t header_offset = marks_offset_ - kHeaderBytes;
  FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(file_, part_name_));
  if (info.size == marks_offset_ + done_.size()) {
    std::string found(kHeaderBytes, '\0');
    FB_RETURN_IF_ERROR(
        sys::ReadAt(file_, header_offset, std::as_writable_bytes(std::span(found)), part_name_));
    if (found == header) {
      return sys::ReadAt(file_, marks_offset_, std::as_writable_bytes(std::span(done_)),
                         part_name_);
    }
  }
  FB_RETURN_IF_ERROR(sys::Resize(file_, 0, part_name_));
  FB_RETURN_IF_ERROR(sys::Resize(file_, marks_offset_ + done_.size(), part_name_));
  return sys::WriteAt(file_, header_offset, AsBytes(header), part_name_);
}

ByteRange PartFile::part(uint64_t index) const {
  const uint64_t begin = index * part_bytes_;
  return {begin, std::min(begin + part_bytes_, source_.size)};
}

Status PartFile::Write(uint64_t index, ByteView bytes) {
  FB_RETURN_IF_ERROR(sys::WriteAt(file_, part(index).offset, bytes, part_name_));
  const std::byte mark{kDone};
  FB_RETURN_IF_ERROR(sys::WriteAt(file_, marks_offset_ + index, ByteView(&mark, 1), part_name_));
  done_[index] = kDone;
  return {};
}

Status PartFile::Commit() {
  if (std::ranges::find(done_, 0) != done_.end()) {
    return Status(Code::kInternal, fmt::format("{} is not whole", part_name_));
  }
  FB_RETURN_IF_ERROR(sys::Resize(file_, source_.size, part_name_));
  FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(file_, part_name_));
  // Some file systems have no attributes; then the next run copies again.
  (void)sys::SetAttribute(file_, kCopyAttribute, CopyMark(source_, info));
  FB_RETURN_IF_ERROR(sys::SyncFile(file_, part_name_));
  Status named = sys::Rename(folder_, part_name_, name_);
  if (!named.ok()) {  // a folder has come there, of a key that goes on behind this one and a slash
    (void)sys::Remove(folder_, part_name_);
    return named;
  }
  sys::SyncDirectory(folder_);
  return {};
}

bool PartFile::IsCopyOf(const sys::Fd& folder, const std::string& name, const PartSource& source) {
  const Result<sys::Fd> file = sys::OpenAt(folder, name, sys::Open::kRead, false);
  if (!file.ok()) return false;
  const Result<sys::FileInfo> info = sys::InfoOf(*file, name);
  if (!info.ok() || !info->regular || info->size != source.size) return false;
  return sys::GetAttribute(*file, kCopyAttribute) == CopyMark(source, *info);
}

}  // namespace forebay::engine
