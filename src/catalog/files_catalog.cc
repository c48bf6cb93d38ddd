#include "catalog/files_catalog.h"

#include <algorithm>
#include <utility>

#include "catalog/coding.h"
#include "catalog/entry_cache.h"
#include "catalog/files_format.h"
#include "catalog/largest_sums.h"

namespace forebay::catalog {
namespace {

struct Segment {
  uint64_t samples = 0;  // its end, in objects
  uint64_t blocks = 0;   // its end, in blocks
};

class FilesFile : public FilesCatalog {
 public:
  Status Parse(std::shared_ptr<const CatalogBytes> bytes);
  const std::string& source_uri() const override { return source_uri_; }
  KeyOrder key_order() const override { return order_; }
  const std::vector<Generation>& generations() const override { return generations_; }
  uint64_t total_bytes() const override { return total_bytes_; }
  uint64_t LargestBytes(uint64_t count) const override {
    return LargestOf(largest_, total_bytes_, count);
  }
  Result<FileEntry> At(uint64_t i) const override;
  Result<uint64_t> SizeOf(uint64_t i) const override;
  bool reads() const override { return file_->reads(); }
  void WillRead(std::span<const uint64_t> files) const override;
  void Rest() const override { file_->Rest(); }

 private:
  Status ParseIndex();
  struct Where {
    uint64_t block = 0;
    uint32_t in_block = 0;
  };
  Where Locate(uint64_t i) const;
  struct Held {
    FilesBlock block;
    std::shared_ptr<const std::vector<std::byte>> keep;
  };
  Result<Held> BlockOf(const Where& where) const;

  std::unique_ptr<BlockFile> file_;
  std::string source_uri_;
  KeyOrder order_ = KeyOrder::kBytes;
  std::vector<Generation> generations_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> largest_;  // sums of the 1, 2, 4, ... largest
  uint64_t total_bytes_ = 0;
  std::unique_ptr<EntryCache<FileEntry>> entries_;  // where blocks have to be read
};

Status FilesFile::Parse(std::shared_ptr<const CatalogBytes> bytes) {
  FB_ASSIGN_OR_RETURN(file_, BlockFile::Open(std::move(bytes), kFilesKind));
  FB_RETURN_IF_ERROR(ParseIndex());
  if (file_->reads()) entries_ = std::make_unique<EntryCache<FileEntry>>();
  return {};
}

Status FilesFile::ParseIndex() {
  Reader in(file_->index());
  source_uri_ = in.Text();
  const uint64_t order = in.Varint();
  if (order > 1) return DamagedCatalog("an unknown order of keys");
  order_ = static_cast<KeyOrder>(order);
  total_bytes_ = in.Varint();
  const uint64_t generations = in.Count(3);
  for (uint64_t i = 0; i < generations; ++i) {
    const uint64_t samples = in.Varint();
    const uint64_t blocks = in.Varint();
    const Segment before = segments_.empty() ? Segment{} : segments_.back();
    if (samples <= before.samples || samples > kFilesMost || blocks < before.blocks ||
        blocks - before.blocks !=
            (samples - before.samples + kFilesPerBlock - 1) / kFilesPerBlock) {
      return DamagedCatalog("a generation cannot be");
    }
    segments_.push_back({samples, blocks});
    generations_.push_back({samples, in.Text()});
  }
  largest_.resize(in.Count(1));
  for (uint64_t& sum : largest_) sum = in.Varint();
  if (!in.ok() || segments_.empty() || segments_.back().blocks != file_->blocks() ||
      largest_.size() != kLargestSums) {
    return DamagedCatalog("its index is cut off");
  }
  return file_->FindDirectory(in.at());
}

FilesFile::Where FilesFile::Locate(uint64_t i) const {
  const auto after = std::ranges::upper_bound(segments_, i, {}, &Segment::samples);
  const Segment before = after == segments_.begin() ? Segment{} : *std::prev(after);
  const uint64_t in_segment = i - before.samples;
  return {before.blocks + in_segment / kFilesPerBlock,
          static_cast<uint32_t>(in_segment % kFilesPerBlock)};
}

Result<FilesFile::Held> FilesFile::BlockOf(const Where& where) const {
  Held held;
  FB_ASSIGN_OR_RETURN(BlockFile::Block bytes, file_->BlockAt(where.block));
  FB_ASSIGN_OR_RETURN(held.block, FilesBlock::Open(bytes.bytes));
  held.keep = std::move(bytes.keep);
  if (where.in_block >= held.block.count()) return DamagedCatalog("a block lacks objects");
  return held;
}

Result<FileEntry> FilesFile::At(uint64_t i) const {
  if (entries_) {
    if (auto known = entries_->Find(i)) return *std::move(known);
  }
  const Where where = Locate(i);
  FB_ASSIGN_OR_RETURN(const Held held, BlockOf(where));
  FB_ASSIGN_OR_RETURN(FileEntry entry, held.block.At(where.in_block));
  if (entries_) entries_->Keep(i, entry);
  return entry;
}

Result<uint64_t> FilesFile::SizeOf(uint64_t i) const {
  if (entries_) {  // whoever asks for the size asks for the rest soon
    FB_ASSIGN_OR_RETURN(const FileEntry entry, At(i));
    return entry.size;
  }
  const Where where = Locate(i);
  FB_ASSIGN_OR_RETURN(const Held held, BlockOf(where));
  return held.block.SizeOf(where.in_block);
}

void FilesFile::WillRead(std::span<const uint64_t> files) const {
  if (!file_->reads()) return;
  std::vector<uint64_t> blocks;
  for (const uint64_t file : files) {
    if (!entries_->Find(file)) blocks.push_back(Locate(file).block);
  }
  file_->WillRead(blocks);
}

}  // namespace

Result<std::shared_ptr<const FilesCatalog>> FilesCatalog::Open(
    std::shared_ptr<const CatalogBytes> bytes) {
  auto catalog = std::make_shared<FilesFile>();
  FB_RETURN_IF_ERROR(catalog->Parse(std::move(bytes)));
  return std::shared_ptr<const FilesCatalog>(std::move(catalog));
}

bool IsFilesCatalog(ByteView head) { return AsText(head).starts_with(kFilesKind.magic); }

}  // namespace forebay::catalog
