#include "catalog/block_file.h"

#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <future>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "catalog/coding.h"

namespace forebay::catalog {
namespace {

constexpr uint64_t kKeptBytes = 32ULL << 20;   // of blocks that were read
constexpr uint64_t kAskedBytes = 16ULL << 20;  // of blocks that WillRead sees to
constexpr uint64_t kIndexBytesMax = 256ULL << 20;
constexpr auto kWait = std::chrono::seconds(90);  // reads end before that

using Loaded = Result<std::shared_ptr<const std::vector<std::byte>>>;
using Loading = std::shared_future<std::shared_ptr<const Loaded>>;

Status CheckBlock(ByteView block) {
  uint64_t check = 0;
  if (block.size() < sizeof(check)) return DamagedCatalog("a block is cut off");
  std::memcpy(&check, block.data(), sizeof(check));
  if (HashBytes(block.subspan(kBlockCheckBytes)).low != check) {
    return DamagedCatalog("a block's hash differs");
  }
  return {};
}

// `block`: its hash is looked at once, here.
Loading StartLoad(const CatalogBytes& bytes, ByteRange range, bool block) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<const Loaded>>>();
  Loading loading = promise->get_future().share();
  bytes.StartRead(range, [promise, range, block](Result<std::vector<std::byte>> read) {
    Status status = read.status();
    if (status.ok() && block) status = CheckBlock(*read);
    if (!status.ok()) {
      promise->set_value(std::make_shared<const Loaded>(std::move(status)));
    } else if (read->size() != range.size()) {
      promise->set_value(
          std::make_shared<const Loaded>(DamagedCatalog("a range of another length")));
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

}  // namespace

Status DamagedCatalog(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("not a whole catalog: {}", what));
}

std::string_view CatalogOf(ByteView head) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"FBCATLG\n", "videos"}, {"FBFILES\n", "plain objects"}, {"FBRECRD\n", "records"}};
  for (const auto& [magic, of] : kKinds) {
    if (AsText(head).starts_with(magic)) return of;
  }
  return {};
}

// The blocks of a catalog that is not in memory: those used last, and those being read.
class BlockFile::Cache {
 public:
  Cache(const CatalogBytes& bytes, std::vector<uint64_t> offsets)
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

BlockFile::BlockFile(std::shared_ptr<const CatalogBytes> bytes) : bytes_(std::move(bytes)) {}
BlockFile::~BlockFile() = default;

Result<std::unique_ptr<BlockFile>> BlockFile::Open(std::shared_ptr<const CatalogBytes> bytes,
                                                   const BlockFileKind& kind) {
  std::unique_ptr<BlockFile> file(new BlockFile(std::move(bytes)));
  FB_RETURN_IF_ERROR(file->ReadHead(kind));
  FB_RETURN_IF_ERROR(file->ReadIndex());
  return file;
}

Status BlockFile::ReadHead(const BlockFileKind& kind) {
  const uint64_t head_bytes = std::min<uint64_t>(bytes_->size(), kBlockFileHeadBytes);
  if (head_bytes == 0) return DamagedCatalog("0 bytes");
  std::shared_ptr<const std::vector<std::byte>> read;
  ByteView head;
  if (const auto view = bytes_->view()) {
    head = view->first(head_bytes);
  } else {
    FB_ASSIGN_OR_RETURN(read, Await(StartLoad(*bytes_, {0, head_bytes}, false)));
    head = *read;
  }
  if (!AsText(head).starts_with(kind.magic)) {
    const std::string_view of = CatalogOf(head);
    if (of.empty()) return DamagedCatalog("wrong magic");
    return Status(
        Code::kInvalidArgument,
        fmt::format("it is a catalog of {}, not of {}: `forebay index --format` says what "
                    "is made",
                    of, kind.of));
  }
  if (head.size() < kBlockFileHeadBytes) {
    return DamagedCatalog(fmt::format("{} bytes", head.size()));
  }
  Reader in(head.subspan(kind.magic.size()));
  const auto version = in.Word<uint32_t>();
  if (version != kind.version) {
    return Status(Code::kUnimplemented,
                  fmt::format("catalog version {}; this Forebay reads {}", version, kind.version));
  }
  (void)in.Word<uint32_t>();
  const auto file_bytes = in.Word<uint64_t>();
  index_offset_ = in.Word<uint64_t>();
  blocks_ = in.Word<uint64_t>();
  index_hash_low_ = in.Word<uint64_t>();
  index_hash_high_ = in.Word<uint64_t>();
  if (HashBytes(head.first(kBlockFileHeadBytes - 8)).low != in.Word<uint64_t>()) {
    return DamagedCatalog("its head's hash differs");
  }
  if (file_bytes != bytes_->size()) {
    return DamagedCatalog(fmt::format("{} bytes, {} expected", bytes_->size(), file_bytes));
  }
  if (index_offset_ < kBlockFileHeadBytes || index_offset_ > file_bytes ||
      file_bytes - index_offset_ > kIndexBytesMax ||
      blocks_ >= (file_bytes - index_offset_) / sizeof(uint64_t)) {
    return DamagedCatalog("lengths do not add up");
  }
  return {};
}

Status BlockFile::ReadIndex() {
  if (const auto view = bytes_->view()) {
    index_ = view->subspan(index_offset_);
  } else {
    FB_ASSIGN_OR_RETURN(index_kept_,
                        Await(StartLoad(*bytes_, {index_offset_, bytes_->size()}, false)));
    index_ = *index_kept_;
  }
  const Hash128 hash = HashBytes(index_);
  if (hash.low != index_hash_low_ || hash.high != index_hash_high_) {
    return DamagedCatalog("its hash differs");
  }
  return {};
}

uint64_t BlockFile::OffsetOf(uint64_t block) const {
  uint64_t offset = 0;
  std::memcpy(&offset, directory_.data() + block * sizeof(offset), sizeof(offset));
  return offset;
}

Status BlockFile::FindDirectory(size_t used) {
  directory_ = index_.subspan(used);
  if (directory_.size() != (blocks_ + 1) * sizeof(uint64_t)) {
    return DamagedCatalog("its directory has another length");
  }
  uint64_t before = kBlockFileHeadBytes;
  if (OffsetOf(0) != before) return DamagedCatalog("its first block begins elsewhere");
  for (uint64_t block = 1; block <= blocks_; ++block) {
    const uint64_t offset = OffsetOf(block);
    if (offset <= before || offset > index_offset_) return DamagedCatalog("blocks overlap");
    before = offset;
  }
  if (before != index_offset_) return DamagedCatalog("lengths do not add up");
  if (bytes_->view()) {
    const MutexLock lock(mutex_);
    checked_.resize(blocks_);
  } else {
    std::vector<uint64_t> offsets(blocks_ + 1);
    std::memcpy(offsets.data(), directory_.data(), directory_.size());
    cache_ = std::make_unique<Cache>(*bytes_, std::move(offsets));
  }
  return {};
}

Result<BlockFile::Block> BlockFile::BlockAt(uint64_t i) const {
  FB_ASSERT(i < blocks_);
  Block block;
  const auto view = bytes_->view();
  if (!view) {
    FB_ASSIGN_OR_RETURN(block.keep, cache_->Get(i));
    block.bytes = *block.keep;
    return block;
  }
  const uint64_t from = OffsetOf(i);
  block.bytes = view->subspan(from, OffsetOf(i + 1) - from);
  bool checked = false;
  {
    const MutexLock lock(mutex_);
    checked = checked_[i];
  }
  if (checked) return block;
  FB_RETURN_IF_ERROR(CheckBlock(block.bytes));
  const MutexLock lock(mutex_);
  checked_[i] = true;
  return block;
}

void BlockFile::WillRead(std::span<const uint64_t> blocks) const {
  if (!cache_) return;
  std::unordered_set<uint64_t> begun;
  uint64_t asked = 0;
  for (const uint64_t block : blocks) {
    if (!begun.insert(block).second) continue;
    asked += cache_->BytesOf(block);
    if (asked > kAskedBytes) return;  // what comes later must not drive out what comes first
    cache_->Begin(block);
  }
}

uint64_t BlockFileWriter::Add(ByteView block) {
  uint64_t check = 0;
  std::memcpy(&check, block.data(), sizeof(check));
  offsets_.push_back(file_.size());
  file_.insert(file_.end(), block.begin(), block.end());
  return check;
}

std::vector<std::byte> BlockFileWriter::Finish(const BlockFileKind& kind, ByteView index) {
  Writer tail;
  tail.Append(index);
  for (const uint64_t offset : offsets_) tail.Word(offset);
  tail.Word(uint64_t{file_.size()});
  const Hash128 hash = HashBytes(tail.bytes());
  Writer head;
  head.Append(AsBytes(kind.magic));
  head.Word(kind.version);
  head.Word(uint32_t{0});
  head.Word(uint64_t{file_.size() + tail.size()});
  head.Word(uint64_t{file_.size()});
  head.Word(uint64_t{offsets_.size()});
  head.Word(hash.low);
  head.Word(hash.high);
  head.Word(HashBytes(head.bytes()).low);
  std::memcpy(file_.data(), head.bytes().data(), head.size());
  file_.insert(file_.end(), tail.bytes().begin(), tail.bytes().end());
  return std::move(file_);
}

}  // namespace forebay::catalog
