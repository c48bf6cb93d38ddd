#include "feed/file_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace forebay::feed {
namespace {

using catalog::FileEntry;
using catalog::FilesCatalog;
using catalog::RecordEntry;
using catalog::RecordView;

constexpr size_t kBytes = 0;  // the fields
constexpr size_t kLabel = 1;

class FilesAsRecords : public catalog::RecordsCatalog {
 public:
  explicit FilesAsRecords(std::shared_ptr<const FilesCatalog> files)
      : files_(std::move(files)),
        fields_{{.name = "bytes", .records = files_->count(), .bytes_max = files_->LargestBytes(1)},
                {.name = "label",
                 .records = files_->count(),
                 .bytes_max = sizeof(int64_t),
                 .dtype = "int64"}} {}

  const FilesCatalog& files() const { return *files_; }
  const std::string& source_uri() const override { return files_->source_uri(); }
  const std::string& format() const override {
    static const std::string name = "files";
    return name;
  }
  const std::string& format_options() const override {
    static const std::string none;
    return none;
  }
  const std::vector<catalog::Generation>& generations() const override {
    return files_->generations();
  }
  uint64_t shard_count() const override { return files_->count(); }
  uint64_t ShardsOf(size_t generation) const override { return generations()[generation].samples; }
  const std::vector<catalog::FieldInfo>& fields() const override { return fields_; }
  uint64_t total_bytes() const override { return files_->total_bytes(); }
  // Not that of the objects, which changes when some are appended: blocks are of 256, as of those
  // that come as they are.
  uint64_t mean_bytes() const override { return 16 << 10; }
  uint64_t range_max() const override { return files_->LargestBytes(1); }
  uint64_t LargestBytes(uint64_t count) const override { return files_->LargestBytes(count); }

  Result<RecordEntry> At(uint64_t i) const override {
    FB_ASSIGN_OR_RETURN(const uint64_t size, files_->SizeOf(i));
    if (size > range_max()) {
      return Status(Code::kDataLoss, fmt::format("object {} of the catalog is {} bytes long, and "
                                                 "the largest is {}",
                                                 i, size, range_max()));
    }
    return RecordEntry{.shard = static_cast<uint32_t>(i),
                       .range = {0, size},
                       .fields = {{.field = kBytes, .range = {0, size}, .bytes = size}}};
  }
  Result<std::string> KeyOf(uint64_t i) const override {
    FB_ASSIGN_OR_RETURN(FileEntry entry, files_->At(i));
    return std::move(entry.key);
  }
  Result<FileEntry> ShardAt(uint64_t shard) const override { return files_->At(shard); }
  bool reads() const override { return files_->reads(); }
  void WillRead(std::span<const uint64_t> records) const override { files_->WillRead(records); }
  void Rest() const override { files_->Rest(); }

 private:
  const std::shared_ptr<const FilesCatalog> files_;
  const std::vector<catalog::FieldInfo> fields_;
};

// The folder right below the root; "": it lies in none.
std::string_view FolderOf(std::string_view key) {
  const size_t slash = key.find('/');
  return slash == key.npos ? std::string_view() : key.substr(0, slash);
}

class FileFields : public RecordFields {
 public:
  explicit FileFields(const FilesCatalog& files)
      : files_(files), fields_{{.name = "bytes"}, {.name = "label", .dtype = "int64"}} {}

  const std::vector<ops::InputField>& fields() const override { return fields_; }
  // Which is why it has to be named.
  bool everywhere(size_t field) const override { return field == kBytes; }
  std::optional<uint64_t> BytesOf(const RecordView& record, size_t field) const override {
    return field == kBytes ? record.range.size() : sizeof(int64_t);
  }
  void RangesOf(const RecordView& record, const std::vector<bool>& needed,
                std::vector<ByteRange>& ranges) const override {
    ranges.clear();
    if (needed[kBytes]) ranges.push_back(record.range);
  }
  std::unique_ptr<RecordOpener> MakeOpener(const std::vector<bool>& needed) const override {
    return std::make_unique<Opener>(*this, needed);
  }

 private:
  class Opener : public RecordOpener {
   public:
    Opener(const FileFields& owner, std::vector<bool> needed)
        : owner_(owner), needed_(std::move(needed)) {}
    Status Open(const RecordView& record, const FetchedBytes& bytes,
                std::span<const MutableBytes> places, std::span<ByteView> fields) override {
      if (needed_[kBytes]) {
        const MutableBytes into = places.empty() ? MutableBytes() : places[kBytes];
        if (into.empty() || into.size() != record.range.size()) {
          FB_ASSIGN_OR_RETURN(fields[kBytes], bytes.Contiguous(record.range, scratch_));
        } else {
          FB_RETURN_IF_ERROR(bytes.CopyTo(record.range, into, nullptr));
          fields[kBytes] = into;
        }
      }
      if (needed_[kLabel]) {
        FB_ASSIGN_OR_RETURN(label_, owner_.LabelOf(record.shard));
        fields[kLabel] = std::as_bytes(std::span(&label_, 1));
      }
      return {};
    }

   private:
    const FileFields& owner_;
    const std::vector<bool> needed_;
    std::vector<std::byte> scratch_;
    int64_t label_ = 0;
  };

  Result<int64_t> LabelOf(uint64_t file) const {
    std::call_once(found_, [this] { FindClasses(); });
    FB_RETURN_IF_ERROR(status_);
    FB_ASSIGN_OR_RETURN(const FileEntry entry, files_.At(file));
    const auto it = classes_.find(FolderOf(entry.key));
    if (it != classes_.end()) return it->second;
    return Status(Code::kDataLoss,
                  fmt::format("'{}' lies in no folder: it has no label", entry.key));
  }
  // As ImageFolder numbers them, by name; folders that were appended come behind those that were
  // there, and hosts that share the objects agree, also on a class of which one of them has none.
  void FindClasses() const {
    const FilesCatalog& all = files_.whole();
    uint64_t i = 0;
    for (const catalog::Generation& generation : all.generations()) {
      std::set<std::string, std::less<>> names;
      for (; i < generation.samples; ++i) {
        const auto entry = all.At(i);
        if (!entry.ok()) {
          status_ = entry.status();
          return;
        }
        const std::string_view folder = FolderOf(entry->key);
        if (folder.empty() || classes_.contains(folder) || names.contains(folder)) continue;
        names.emplace(folder);
      }
      for (const std::string& name : names) {
        classes_.emplace(name, static_cast<int64_t>(classes_.size()));
      }
    }
  }

  const FilesCatalog& files_;  // of the catalog that this is made for, which outlives it
  const std::vector<ops::InputField> fields_;
  mutable std::once_flag found_;
  mutable Status status_;
  mutable std::map<std::string, int64_t, std::less<>> classes_;  // their numbers
};

}  // namespace

std::shared_ptr<const catalog::RecordsCatalog> RecordsOfFiles(
    std::shared_ptr<const FilesCatalog> files) {
  return std::make_shared<FilesAsRecords>(std::move(files));
}

std::shared_ptr<const RecordFields> FieldsOfFiles(const catalog::RecordsCatalog& catalog) {
  const auto* files = dynamic_cast<const FilesAsRecords*>(&catalog);
  if (files == nullptr) return nullptr;
  return std::make_shared<FileFields>(files->files());
}

}  // namespace forebay::feed
