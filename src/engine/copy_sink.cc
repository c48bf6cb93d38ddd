#include "engine/copy_sink.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/file/file_store.h"
#include "store/part_size.h"

namespace forebay::engine {
namespace {

constexpr uint64_t kFilePartBytes = 8ULL << 20;
constexpr uint64_t kStorePartBytes = 16ULL << 20;
constexpr auto kAbortTimeout = std::chrono::seconds(2);

class FileSink : public CopySink {
 public:
  explicit FileSink(std::unique_ptr<PartFile> file) : file_(std::move(file)) {}
  uint64_t part_count() const override { return file_->part_count(); }
  ByteRange part(uint64_t index) const override { return file_->part(index); }
  bool done(uint64_t index) const override { return file_->done(index); }
  Status Write(uint64_t index, ByteView bytes, store::WriteProgress*) override {
    return file_->Write(index, bytes);
  }
  Status Finish() override { return file_->Commit(); }

 private:
  std::unique_ptr<PartFile> file_;
};

// Nothing is left to do: the copy is there, or it was only a folder.
class DoneSink : public CopySink {
 public:
  explicit DoneSink(bool already_there) : already_there_(already_there) {}
  bool already_there() const override { return already_there_; }
  uint64_t part_count() const override { return 0; }
  ByteRange part(uint64_t /*index*/) const override { return {}; }
  Status Write(uint64_t, ByteView, store::WriteProgress*) override { return {}; }
  Status Finish() override { return {}; }

 private:
  bool already_there_;
};

class FileDestination : public CopyDestination {
 public:
  FileDestination(sys::Fd folder, bool beneath) : folder_(std::move(folder)), beneath_(beneath) {}

  uint64_t part_bytes() const override { return kFilePartBytes; }

  Result<std::unique_ptr<CopySink>> Begin(const std::string& name,
                                          const PartSource& source) override {
    if (source.size == 0 && name.ends_with('/')) return BeginFolder(name);
    FB_RETURN_IF_ERROR(store::CheckFileKey(name));
    const size_t slash = name.rfind('/');
    const std::string parent = slash == name.npos ? "" : name.substr(0, slash);
    const std::string last = slash == name.npos ? name : name.substr(slash + 1);
    FB_ASSIGN_OR_RETURN(sys::Fd folder, sys::MakeDirectories(folder_, parent, beneath_));
    if (PartFile::IsCopyOf(folder, last, source)) return std::make_unique<DoneSink>(true);
    FB_RETURN_IF_ERROR(MayReplace(folder, last, name));
    FB_ASSIGN_OR_RETURN(std::unique_ptr<PartFile> file,
                        PartFile::Open(std::move(folder), last, source, kFilePartBytes));
    if (!file) return std::make_unique<DoneSink>(true);
    return std::make_unique<FileSink>(std::move(file));
  }

 private:
  // A file may be. A link may lead anywhere: none is replaced, and none of a tree is followed.
  static Status MayReplace(const sys::Fd& folder, const std::string& last,
                           const std::string& name) {
    if (sys::IsLink(folder, last)) {
      return Status(Code::kInvalidArgument, fmt::format("{} is a symbolic link", name));
    }
    const Result<sys::Fd> there = sys::OpenAt(folder, last, sys::Open::kInfo, true);
    if (!there.ok()) return {};
    FB_ASSIGN_OR_RETURN(const sys::FileInfo info, sys::InfoOf(*there, name));
    if (info.regular) return {};
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is {}", name, info.directory ? "a folder" : "no regular file"));
  }

  // What consoles put into a bucket to show an empty folder.
  Result<std::unique_ptr<CopySink>> BeginFolder(const std::string& name) {
    const std::string path = name.substr(0, name.size() - 1);
    if (!path.empty()) {
      FB_RETURN_IF_ERROR(store::CheckFileKey(path));
      FB_RETURN_IF_ERROR(sys::MakeDirectories(folder_, path, beneath_).status());
    }
    return std::make_unique<DoneSink>(false);
  }

  sys::Fd folder_;
  bool beneath_;
};

class StoreSink : public CopySink {
 public:
  StoreSink(store::SyncStore* store, std::string key, uint64_t size, uint64_t part_bytes)
      : store_(store),
        key_(std::move(key)),
        size_(size),
        part_bytes_(part_bytes),
        etags_(size == 0 ? 1 : (size + part_bytes_ - 1) / part_bytes_) {}

  Status Begin() {
    if (etags_.size() == 1) return {};
    FB_ASSIGN_OR_RETURN(upload_id_, store_->CreateUpload(Upload()));
    return {};
  }

  uint64_t part_count() const override { return etags_.size(); }
  ByteRange part(uint64_t index) const override {
    return {index * part_bytes_, std::min((index + 1) * part_bytes_, size_)};
  }

  Status Write(uint64_t index, ByteView bytes, store::WriteProgress* progress) override {
    const store::RequestOptions options =
        store_->TransferOptions(std::max<uint64_t>(bytes.size(), kCopyBytesInFlight));
    if (etags_.size() == 1) {
      return store_->Put({.key = key_, .body = {bytes}, .progress = progress, .options = options})
          .status();
    }
    FB_ASSIGN_OR_RETURN(const store::PutResult put,
                        store_->PutPart({.key = key_,
                                         .upload_id = upload_id_,
                                         .part_number = static_cast<int>(index + 1),
                                         .body = {bytes},
                                         .progress = progress,
                                         .options = options}));
    etags_[index] = put.etag;
    return {};
  }

  Status Finish() override {
    if (etags_.size() == 1) return {};
    store::UploadRequest upload = Upload();
    upload.part_etags = etags_;
    if (Status done = store_->CompleteUpload(upload).status(); !done.ok()) {
      Abandon();
      return done;
    }
    FB_ASSIGN_OR_RETURN(const store::ObjectInfo info, store_->Head(key_));
    if (info.size == size_) return {};
    return Status(Code::kDataLoss, fmt::format("the upload has {} bytes, not {}", info.size, size_),
                  ErrorDetail{.uri = store_->async().root_uri() + "/" + key_});
  }

  // Best effort, also when the store's other requests have been cancelled: what remains is the
  // bucket's lifecycle rule's to remove.
  void Abandon() override {
    if (etags_.size() == 1) return;
    store::UploadRequest upload = Upload();
    upload.options.deadline = store_->async().executor().Now() + kAbortTimeout;
    // Said first: a second signal ends the process in the middle of it.
    const std::string which =
        fmt::format("upload {} of {}/{}", upload_id_, store_->async().root_uri(), key_);
    Log(LogLevel::kWarn, "aborting " + which);
    if (const Status aborted = store_->Anew().AbortUpload(upload); !aborted.ok()) {
      Log(LogLevel::kWarn, fmt::format("{} is left behind, with the parts that had come: {}", which,
                                       aborted.ToString()));
    }
  }

 private:
  store::UploadRequest Upload() const { return {.key = key_, .upload_id = upload_id_}; }

  store::SyncStore* store_;
  std::string key_;
  uint64_t size_;
  uint64_t part_bytes_;
  std::vector<std::string> etags_;
  std::string upload_id_;
};

class StoreDestination : public CopyDestination {
 public:
  StoreDestination(store::SyncStore* store, std::string prefix)
      : store_(store), prefix_(std::move(prefix)) {}

  uint64_t part_bytes() const override { return kStorePartBytes; }
  bool tells_writes() const override { return true; }

  Result<std::unique_ptr<CopySink>> Begin(const std::string& name,
                                          const PartSource& source) override {
    FB_ASSIGN_OR_RETURN(const uint64_t part_bytes,
                        store::PartBytesFor(source.size, kStorePartBytes));
    auto sink = std::make_unique<StoreSink>(store_, prefix_ + name, source.size, part_bytes);
    FB_RETURN_IF_ERROR(sink->Begin());
    return sink;
  }

 private:
  store::SyncStore* store_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<CopyDestination> MakeFileDestination(sys::Fd folder, bool beneath) {
  return std::make_unique<FileDestination>(std::move(folder), beneath);
}

std::unique_ptr<CopyDestination> MakeStoreDestination(store::SyncStore* store, std::string prefix) {
  return std::make_unique<StoreDestination>(store, std::move(prefix));
}

}  // namespace forebay::engine
