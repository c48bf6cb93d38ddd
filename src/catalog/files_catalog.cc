#include "catalog/files_catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <future>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/mutex.h"
#include "catalog/coding.h"
#include "catalog/files_format.h"
#include "sys/mapped_file.h"

namespace forebay::catalog {
namespace {

constexpr uint64_t kKeptBytes = 32ULL << 20;   // of blocks that were read
constexpr size_t kKeptEntries = 1 << 16;       // of single objects, beside them
constexpr uint64_t kAskedBytes = 16ULL << 20;  // of blocks that WillRead sees to
constexpr uint64_t kIndexBytesMax = 256ULL << 20;
constexpr auto kWait = std::chrono::seconds(90);  // reads end before that

Status Damaged(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("not a whole catalog: {}", what));
}

class InMemory : public CatalogBytes {
 public:
  explicit InMemory(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  std::optional<ByteView> view() const override { return bytes_; }
  void StartRead(ByteRange, OnRead on_read) const override { on_read(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Mapped : public CatalogBytes {
 public:
  explicit Mapped(std::shared_ptr<const sys::MappedFile> file) : file_(std::move(file)) {}
  uint64_t size() const override { return file_->bytes().size(); }
  std::optional<ByteView> view() const override { return file_->bytes(); }
  void StartRead(ByteRange range, OnRead on_read) const override {
    const ByteView part = file_->bytes().subspan(range.offset, range.size());
    on_read(std::vector<std::byte>(part.begin(), part.end()));
  }

 private:
  std::shared_ptr<const sys::MappedFile> file_;
};

using Loaded = Result<std::shared_ptr<const std::vector<std::byte>>>;
using Loading = std::shared_future<std::shared_ptr<const Loaded>>;

// `block`: its hash is looked at once, here.
Loading StartLoad(const CatalogBytes& bytes, ByteRange range, bool block) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<const Loaded>>>();
  Loading loading = promise->get_future().share();
  bytes.StartRead(range, [promise, range, block](Result<std::vector<std::byte>> read) {
    Status status = read.status();
    if (status.ok() && block) status = FilesBlock::Open(*read, false).status();
    if (!status.ok()) {
      promise->set_value(std::make_shared<const Loaded>(std::move(status)));
    } else if (read->size() != range.size()) {
      promise->set_value(std::make_shared<const Loaded>(Damaged("a range of another length")));
    } else {
      promise->set_value(std::make_shared<const Loaded>(
          std::make_shared<const std::vector<std::byte>>(*std::move(read))));
    }
  });
  return loading;
}

Loaded Await(const Loading& loading) {
  if (loading.wait_for(kWait) != std::future_status::ready) {
    return Status(Code::kDeadlineExceeded, "reading the catalog does not end");
  }
  return *loading.get();
}

// The blocks of a catalog that is not in memory: those used last, and those being read.
class BlockCache {
 public:
  BlockCache(const CatalogBytes& bytes, std::vector<uint64_t> offsets)
      : bytes_(bytes), offsets_(std::move(offsets)) {}

  void Begin(uint64_t block) FB_EXCLUDES(mutex_) { (void)Find(block); }
  Loaded Get(uint64_t block) FB_EXCLUDES(mutex_) {
    Loaded loaded = Await(Find(block));
    if (!loaded.ok()) Forget(block);
    return loaded;
  }
  uint64_t BytesOf(uint64_t block) const { return offsets_[block + 1] - offsets_[block]; }

 private:
  struct Kept {
    Loading loading;
    std::list<uint64_t>::iterator place;
  };

  Loading Find(uint64_t block) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (const auto it = kept_.find(block); it != kept_.end()) {
      by_use_.splice(by_use_.begin(), by_use_, it->second.place);
      return it->second.loading;
    }
    while (!by_use_.empty() && kept_bytes_ + BytesOf(block) > kKeptBytes) Drop(by_use_.back());
    by_use_.push_front(block);
    kept_bytes_ += BytesOf(block);
    Loading loading = StartLoad(bytes_, {offsets_[block], offsets_[block + 1]}, true);
    kept_[block] = {loading, by_use_.begin()};
    return loading;
  }
  void Forget(uint64_t block) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (kept_.contains(block)) Drop(block);
  }
  void Drop(uint64_t block) FB_REQUIRES(mutex_) {
    const auto it = kept_.find(block);
    kept_bytes_ -= BytesOf(block);
    by_use_.erase(it->second.place);
    kept_.erase(it);
  }

  const CatalogBytes& bytes_;
  const std::vector<uint64_t> offsets_;
  Mutex mutex_;
  std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
  uint64_t kept_bytes_ FB_GUARDED_BY(mutex_) = 0;
};

// What was said of single objects: it is asked for again when the object is read, by when its block
// may be gone. The oldest half goes when it is full.
class EntryCache {
 public:
  std::optional<FileEntry> Find(uint64_t i) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& half : halves_) {
      if (const auto it = half.find(i); it != half.end()) return it->second;
    }
    return std::nullopt;
  }
  void Keep(uint64_t i, const FileEntry& entry) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (halves_[0].size() >= kKeptEntries / 2) halves_[1] = std::exchange(halves_[0], {});
    halves_[0][i] = entry;
  }

 private:
  Mutex mutex_;
  std::unordered_map<uint64_t, FileEntry> halves_[2] FB_GUARDED_BY(mutex_);
};

struct Segment {
  uint64_t samples = 0;  // its end, in objects
  uint64_t blocks = 0;   // its end, in blocks
};

class FilesFile : public FilesCatalog {
 public:
  explicit FilesFile(std::shared_ptr<const CatalogBytes> bytes) : bytes_(std::move(bytes)) {}

  Status Parse();
  const std::string& source_uri() const override { return source_uri_; }
  KeyOrder key_order() const override { return order_; }
  const std::vector<Generation>& generations() const override { return generations_; }
  uint64_t total_bytes() const override { return total_bytes_; }
  uint64_t LargestBytes(uint64_t count) const override;
  Result<FileEntry> At(uint64_t i) const override;
  Result<uint64_t> SizeOf(uint64_t i) const override;
  bool reads() const override { return cache_ != nullptr; }
  void WillRead(std::span<const uint64_t> files) const override;
  void Rest() const override { bytes_->Rest(); }

 private:
  Status ParseHead(ByteView head);
  Status ParseIndex(ByteView index);
  Status CheckDirectory(ByteView directory);
  uint64_t OffsetOf(uint64_t block) const {
    uint64_t offset = 0;
    std::memcpy(&offset, directory_.data() + block * sizeof(offset), sizeof(offset));
    return offset;
  }
  struct Where {
    uint64_t block = 0;
    uint32_t in_block = 0;
  };
  Where Locate(uint64_t i) const;
  struct Held {
    FilesBlock block;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // where there is no view
  };
  Result<Held> BlockOf(const Where& where) const;
  Result<ByteView> ReadIndex();

  std::shared_ptr<const CatalogBytes> bytes_;
  std::string source_uri_;
  KeyOrder order_ = KeyOrder::kBytes;
  std::vector<Generation> generations_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> largest_;  // sums of the 1, 2, 4, ... largest
  uint64_t total_bytes_ = 0;
  uint64_t index_offset_ = 0;
  uint64_t blocks_ = 0;
  Hash128 index_hash_;
  std::shared_ptr<const std::vector<std::byte>> index_;  // where there is no view
  ByteView directory_;                                   // offsets of the blocks, and their end
  std::unique_ptr<BlockCache> cache_;                    // where there is no view
  std::unique_ptr<EntryCache> entries_;
  mutable Mutex mutex_;
  mutable std::vector<bool> checked_ FB_GUARDED_BY(mutex_);  // blocks of a view
};

Status FilesFile::ParseHead(ByteView head) {
  if (!IsFilesCatalog(head)) {
    if (AsText(head).starts_with("FBCATLG\n")) {
      return Status(Code::kInvalidArgument,
                    "it is a catalog of videos: `forebay index --format files` makes one of plain "
                    "objects");
    }
    return Damaged("wrong magic");
  }
  if (head.size() < kFilesHeadBytes) return Damaged(fmt::format("{} bytes", head.size()));
  Reader in(head.subspan(kFilesMagic.size()));
  const auto version = in.Word<uint32_t>();
  if (version != kFilesVersion) {
    return Status(Code::kUnimplemented,
                  fmt::format("catalog version {}; this Forebay reads {}", version, kFilesVersion));
  }
  (void)in.Word<uint32_t>();
  const auto file_bytes = in.Word<uint64_t>();
  index_offset_ = in.Word<uint64_t>();
  blocks_ = in.Word<uint64_t>();
  index_hash_.low = in.Word<uint64_t>();
  index_hash_.high = in.Word<uint64_t>();
  if (HashBytes(head.first(kFilesHeadBytes - 8)).low != in.Word<uint64_t>()) {
    return Damaged("its head's hash differs");
  }
  if (file_bytes != bytes_->size()) {
    return Damaged(fmt::format("{} bytes, {} expected", bytes_->size(), file_bytes));
  }
  if (index_offset_ < kFilesHeadBytes || index_offset_ > file_bytes ||
      file_bytes - index_offset_ > kIndexBytesMax ||
      blocks_ >= (file_bytes - index_offset_) / sizeof(uint64_t)) {
    return Damaged("lengths do not add up");
  }
  return {};
}

Result<ByteView> FilesFile::ReadIndex() {
  if (const auto view = bytes_->view()) return view->subspan(index_offset_);
  FB_ASSIGN_OR_RETURN(index_, Await(StartLoad(*bytes_, {index_offset_, bytes_->size()}, false)));
  return ByteView(*index_);
}

Status FilesFile::Parse() {
  std::shared_ptr<const std::vector<std::byte>> read;
  const uint64_t head_bytes = std::min<uint64_t>(bytes_->size(), kFilesHeadBytes);
  if (head_bytes == 0) return Damaged("0 bytes");
  if (const auto view = bytes_->view()) {
    FB_RETURN_IF_ERROR(ParseHead(view->first(head_bytes)));
  } else {
    FB_ASSIGN_OR_RETURN(read, Await(StartLoad(*bytes_, {0, head_bytes}, false)));
    FB_RETURN_IF_ERROR(ParseHead(*read));
  }
  FB_ASSIGN_OR_RETURN(const ByteView index, ReadIndex());
  if (HashBytes(index) != index_hash_) return Damaged("its hash differs");
  FB_RETURN_IF_ERROR(ParseIndex(index));
  if (bytes_->view()) {
    const MutexLock lock(mutex_);
    checked_.resize(blocks_);
  } else {
    std::vector<uint64_t> offsets(blocks_ + 1);
    std::memcpy(offsets.data(), directory_.data(), directory_.size());
    cache_ = std::make_unique<BlockCache>(*bytes_, std::move(offsets));
    entries_ = std::make_unique<EntryCache>();
  }
  return {};
}

Status FilesFile::ParseIndex(ByteView index) {
  Reader in(index);
  source_uri_ = in.Text();
  const uint64_t order = in.Varint();
  if (order > 1) return Damaged("an unknown order of keys");
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
      return Damaged("a generation cannot be");
    }
    segments_.push_back({samples, blocks});
    generations_.push_back({samples, in.Text()});
  }
  largest_.resize(in.Count(1));
  for (uint64_t& sum : largest_) sum = in.Varint();
  if (!in.ok() || segments_.empty() || segments_.back().blocks != blocks_ ||
      largest_.size() != kLargestSums) {
    return Damaged("its index is cut off");
  }
  return CheckDirectory(index.subspan(in.at()));
}

Status FilesFile::CheckDirectory(ByteView directory) {
  if (directory.size() != (blocks_ + 1) * sizeof(uint64_t)) {
    return Damaged("its directory has another length");
  }
  directory_ = directory;
  uint64_t before = kFilesHeadBytes;
  if (OffsetOf(0) != before) return Damaged("its first block begins elsewhere");
  for (uint64_t block = 1; block <= blocks_; ++block) {
    const uint64_t offset = OffsetOf(block);
    if (offset <= before || offset > index_offset_) return Damaged("blocks overlap");
    before = offset;
  }
  return before == index_offset_ ? Status() : Damaged("lengths do not add up");
}

// Of 2^k < count < 2^(k+1) objects, the sum is at most that of 2^(k+1), and at most count times the
// mean of the largest 2^k.
uint64_t FilesFile::LargestBytes(uint64_t count) const {
  if (count == 0) return 0;
  const auto k = std::min<size_t>(static_cast<size_t>(std::bit_width(count)) - 1, kLargestSums - 1);
  uint64_t most = largest_[k];
  if (count > uint64_t{1} << k) {
    const uint64_t mean = (largest_[k] >> k) + 1;
    most = count > total_bytes_ / mean ? total_bytes_ : mean * count;
    if (k + 1 < kLargestSums) most = std::min(most, largest_[k + 1]);
  }
  return std::min(most, total_bytes_);
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
  if (const auto view = bytes_->view()) {
    const uint64_t from = OffsetOf(where.block);
    bool checked = false;
    {
      const MutexLock lock(mutex_);
      checked = checked_[where.block];
    }
    FB_ASSIGN_OR_RETURN(
        held.block,
        FilesBlock::Open(view->subspan(from, OffsetOf(where.block + 1) - from), checked));
    const MutexLock lock(mutex_);
    checked_[where.block] = true;
  } else {
    FB_ASSIGN_OR_RETURN(held.bytes, cache_->Get(where.block));
    FB_ASSIGN_OR_RETURN(held.block, FilesBlock::Open(*held.bytes, true));
  }
  if (where.in_block >= held.block.count()) return Damaged("a block lacks objects");
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
  if (!cache_) return;
  std::unordered_set<uint64_t> blocks;
  uint64_t asked = 0;
  for (const uint64_t file : files) {
    if (entries_->Find(file)) continue;
    const uint64_t block = Locate(file).block;
    if (!blocks.insert(block).second) continue;
    asked += cache_->BytesOf(block);
    if (asked > kAskedBytes) return;  // what comes later must not drive out what comes first
    cache_->Begin(block);
  }
}

}  // namespace

std::shared_ptr<const CatalogBytes> BytesInMemory(std::vector<std::byte> bytes) {
  return std::make_shared<InMemory>(std::move(bytes));
}

Result<std::shared_ptr<const CatalogBytes>> MapBytes(const std::string& path) {
  FB_ASSIGN_OR_RETURN(auto file, sys::MappedFile::Open(path));
  return std::shared_ptr<const CatalogBytes>(std::make_shared<Mapped>(std::move(file)));
}

Result<std::shared_ptr<const FilesCatalog>> FilesCatalog::Open(
    std::shared_ptr<const CatalogBytes> bytes) {
  auto catalog = std::make_shared<FilesFile>(std::move(bytes));
  FB_RETURN_IF_ERROR(catalog->Parse());
  return std::shared_ptr<const FilesCatalog>(std::move(catalog));
}

bool IsFilesCatalog(ByteView head) { return AsText(head).starts_with(kFilesMagic); }

}  // namespace forebay::catalog
