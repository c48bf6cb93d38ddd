#include "catalog/records_catalog.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "catalog/coding.h"
#include "catalog/entry_cache.h"
#include "catalog/largest_sums.h"
#include "catalog/records_format.h"

namespace forebay::catalog {
namespace {

struct Segment {
  uint64_t records = 0;  // its end
  uint64_t blocks = 0;   // its end
  uint64_t shards = 0;   // its end
  uint64_t bytes = 0;    // of its records and all before
};

class RecordsFile : public RecordsCatalog {
 public:
  Status Parse(std::shared_ptr<const CatalogBytes> bytes);

  const std::string& source_uri() const override { return source_uri_; }
  const std::string& format() const override { return format_; }
  const std::string& format_options() const override { return format_options_; }
  const std::vector<Generation>& generations() const override { return generations_; }
  uint64_t shard_count() const override { return segments_.back().shards; }
  uint64_t ShardsOf(size_t generation) const override { return segments_[generation].shards; }
  const std::vector<FieldInfo>& fields() const override { return fields_; }
  uint64_t total_bytes() const override { return segments_.back().bytes; }
  uint64_t mean_bytes() const override { return segments_[0].bytes / segments_[0].records; }
  uint64_t range_max() const override { return range_max_; }
  uint64_t LargestBytes(uint64_t count) const override {
    return LargestOf(largest_, total_bytes(), count);
  }
  Result<RecordEntry> At(uint64_t i) const override;
  Status Read(uint64_t first, uint64_t end, RecordTable& records) const override;
  Result<std::string> KeyOf(uint64_t i) const override;
  Result<FileEntry> ShardAt(uint64_t shard) const override;
  bool reads() const override { return file_->reads(); }
  void WillRead(std::span<const uint64_t> records) const override;
  void Rest() const override { file_->Rest(); }

 private:
  Status ParseIndex();
  Status ParseGenerations(Reader& in);
  struct Where {
    uint64_t block = 0;
    uint32_t in_block = 0;
  };
  Where Locate(uint64_t i) const;
  struct Held {
    RecordsBlock block;
    std::shared_ptr<const std::vector<std::byte>> keep;
  };
  Result<Held> BlockOf(const Where& where) const;
  Status Check(const RecordView& entry) const;

  std::unique_ptr<BlockFile> file_;
  std::string source_uri_;
  std::string format_;
  std::string format_options_;
  std::vector<FieldInfo> fields_;
  std::vector<Generation> generations_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> largest_;  // sums of the 1, 2, 4, ... largest
  uint64_t range_max_ = 0;
  // Where blocks have to be read.
  std::unique_ptr<EntryCache<RecordEntry>> entries_;
  std::unique_ptr<EntryCache<FileEntry>> shard_entries_;
};

Status RecordsFile::Parse(std::shared_ptr<const CatalogBytes> bytes) {
  FB_ASSIGN_OR_RETURN(file_, BlockFile::Open(std::move(bytes), kRecordsKind));
  FB_RETURN_IF_ERROR(ParseIndex());
  if (file_->reads()) {
    entries_ = std::make_unique<EntryCache<RecordEntry>>();
    shard_entries_ = std::make_unique<EntryCache<FileEntry>>();
  }
  return {};
}

Status RecordsFile::ParseGenerations(Reader& in) {
  const uint64_t generations = in.Count(5);
  for (uint64_t i = 0; i < generations; ++i) {
    const uint64_t records = in.Varint();
    const uint64_t blocks = in.Varint();
    const uint64_t shards = in.Varint();
    const uint64_t bytes = in.Varint();
    const Segment before = segments_.empty() ? Segment{} : segments_.back();
    if (records <= before.records || records > kRecordsMost || blocks < before.blocks ||
        blocks - before.blocks != RecordBlocksFor(records - before.records) ||
        shards <= before.shards || shards >> 32 != 0 || bytes < before.bytes) {
      return DamagedCatalog("a generation cannot be");
    }
    segments_.push_back({records, blocks, shards, bytes});
    generations_.push_back({records, in.Text()});
  }
  return segments_.empty() ? DamagedCatalog("it has no generation") : Status();
}

Status RecordsFile::ParseIndex() {
  Reader in(file_->index());
  source_uri_ = in.Text();
  format_ = in.Text();
  format_options_ = in.Text();
  fields_.resize(std::min(in.Count(5), kFieldsMost));
  for (FieldInfo& field : fields_) {
    field.name = in.Text();
    field.records = in.Varint();
    field.bytes_max = in.Varint();
    field.dtype = in.Text();
    field.shape.resize(in.Count(1));
    for (int64_t& size : field.shape) size = static_cast<int64_t>(in.Varint());
  }
  range_max_ = in.Varint();
  FB_RETURN_IF_ERROR(ParseGenerations(in));
  largest_.resize(in.Count(1));
  for (uint64_t& sum : largest_) sum = in.Varint();
  const uint64_t blocks = file_->blocks() - std::min(file_->blocks(), segments_.back().blocks);
  if (!in.ok() || largest_.size() != kLargestSums ||
      blocks != (shard_count() + kFilesPerBlock - 1) / kFilesPerBlock) {
    return DamagedCatalog("its index is cut off");
  }
  return file_->FindDirectory(in.at());
}

RecordsFile::Where RecordsFile::Locate(uint64_t i) const {
  const auto after = std::ranges::upper_bound(segments_, i, {}, &Segment::records);
  const Segment before = after == segments_.begin() ? Segment{} : *std::prev(after);
  const uint64_t in_segment = i - before.records;
  return {before.blocks + in_segment / kRecordsPerBlock,
          static_cast<uint32_t>(in_segment % kRecordsPerBlock)};
}

Result<RecordsFile::Held> RecordsFile::BlockOf(const Where& where) const {
  Held held;
  FB_ASSIGN_OR_RETURN(BlockFile::Block bytes, file_->BlockAt(where.block));
  FB_ASSIGN_OR_RETURN(held.block, RecordsBlock::Open(bytes.bytes));
  held.keep = std::move(bytes.keep);
  if (where.in_block >= held.block.count()) return DamagedCatalog("a block lacks records");
  return held;
}

Result<RecordEntry> RecordsFile::At(uint64_t i) const {
  FB_ASSERT(i < count());
  if (entries_) {
    if (auto known = entries_->Find(i)) return *std::move(known);
  }
  const Where where = Locate(i);
  FB_ASSIGN_OR_RETURN(const Held held, BlockOf(where));
  FB_ASSIGN_OR_RETURN(RecordEntry entry, held.block.At(where.in_block));
  FB_RETURN_IF_ERROR(Check(entry));
  if (entries_) entries_->Keep(i, entry);
  return entry;
}

Status RecordsFile::Check(const RecordView& entry) const {
  const bool fields_known = std::ranges::all_of(
      entry.fields, [&](const RecordField& field) { return field.field < fields_.size(); });
  if (entry.shard >= shard_count() || entry.range.size() > range_max_ || !fields_known) {
    return DamagedCatalog("a record cannot be");
  }
  return {};
}

Status RecordsFile::Read(uint64_t first, uint64_t end, RecordTable& records) const {
  // Where blocks have to be read, entries are what is kept of them.
  if (entries_) return RecordsCatalog::Read(first, end, records);
  FB_ASSERT(first <= end && end <= count());
  while (first < end) {
    const Where where = Locate(first);
    FB_ASSIGN_OR_RETURN(const Held held, BlockOf(where));
    const uint64_t n = std::min<uint64_t>(end - first, held.block.count() - where.in_block);
    const size_t before = records.size();
    const auto to = static_cast<uint32_t>(where.in_block + n);
    FB_RETURN_IF_ERROR(held.block.Read(where.in_block, to, records));
    for (size_t i = before; i < records.size(); ++i) FB_RETURN_IF_ERROR(Check(records[i]));
    first += n;
  }
  return {};
}

Result<std::string> RecordsFile::KeyOf(uint64_t i) const {
  FB_ASSERT(i < count());
  const Where where = Locate(i);
  FB_ASSIGN_OR_RETURN(const Held held, BlockOf(where));
  return held.block.KeyOf(where.in_block);
}

Result<FileEntry> RecordsFile::ShardAt(uint64_t shard) const {
  FB_ASSERT(shard < shard_count());
  if (shard_entries_) {
    if (auto known = shard_entries_->Find(shard)) return *std::move(known);
  }
  FB_ASSIGN_OR_RETURN(const BlockFile::Block bytes,
                      file_->BlockAt(segments_.back().blocks + shard / kFilesPerBlock));
  FB_ASSIGN_OR_RETURN(const FilesBlock block, FilesBlock::Open(bytes.bytes));
  const auto in_block = static_cast<uint32_t>(shard % kFilesPerBlock);
  if (in_block >= block.count()) return DamagedCatalog("a block lacks shards");
  FB_ASSIGN_OR_RETURN(FileEntry entry, block.At(in_block));
  if (shard_entries_) shard_entries_->Keep(shard, entry);
  return entry;
}

void RecordsFile::WillRead(std::span<const uint64_t> records) const {
  if (!file_->reads()) return;
  std::vector<uint64_t> blocks;
  for (const uint64_t record : records) {
    if (!entries_->Find(record)) blocks.push_back(Locate(record).block);
  }
  file_->WillRead(blocks);
}

}  // namespace

Status RecordsCatalog::Read(uint64_t first, uint64_t end, RecordTable& records) const {
  for (; first < end; ++first) {
    FB_ASSIGN_OR_RETURN(const RecordEntry entry, At(first));
    records.Append(entry);
  }
  return {};
}

Result<std::shared_ptr<const RecordsCatalog>> RecordsCatalog::Open(
    std::shared_ptr<const CatalogBytes> bytes) {
  auto catalog = std::make_shared<RecordsFile>();
  FB_RETURN_IF_ERROR(catalog->Parse(std::move(bytes)));
  return std::shared_ptr<const RecordsCatalog>(std::move(catalog));
}

bool IsRecordsCatalog(ByteView head) { return AsText(head).starts_with(kRecordsKind.magic); }

}  // namespace forebay::catalog
