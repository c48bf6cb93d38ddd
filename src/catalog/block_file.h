// What catalogs of very many things have in common: a head, blocks that are read when they are
// asked for, and an index at the end with a directory of the blocks. Byte table:
// docs/formats/files.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "catalog/catalog_bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

inline constexpr size_t kBlockFileHeadBytes = 64;
inline constexpr size_t kBlockCheckBytes = 8;

// A kind of such a file.
struct BlockFileKind {
  std::string_view magic;  // eight characters
  uint32_t version = 1;
  std::string_view of;  // "plain objects"
};

// What a file that begins like this is a catalog of: "videos", "plain objects", "records"; "": none
// that is known.
std::string_view CatalogOf(ByteView head);

Status DamagedCatalog(std::string_view what);

// Immutable, shared by any number of threads.
class BlockFile {
 public:
  // Reads head and index. Errors: kDataLoss, kInvalidArgument (a catalog of something else),
  // kUnimplemented (another version), and those of reading.
  static Result<std::unique_ptr<BlockFile>> Open(std::shared_ptr<const CatalogBytes> bytes,
                                                 const BlockFileKind& kind);
  ~BlockFile();

  // As the kind's writer made it, without the directory behind it: `used` of its bytes were read.
  ByteView index() const { return index_; }
  // The directory begins behind the first `used` bytes of the index. Once, before Block. Errors:
  // kDataLoss.
  Status FindDirectory(size_t used);
  uint64_t blocks() const { return blocks_; }

  // A block's bytes, whose hash is right. `keep` holds them.
  struct Block {
    ByteView bytes;
    std::shared_ptr<const std::vector<std::byte>> keep;  // where the file is not in memory
  };
  // i < blocks(). Reads what is not there yet, for at most a minute. Errors: kDataLoss, and those
  // of reading.
  Result<Block> BlockAt(uint64_t i) const;
  // Whether blocks have to be read: the file is neither in memory nor mapped.
  bool reads() const { return cache_ != nullptr; }
  // These are asked for soon, the first ones first: begins to read as many as are kept until then.
  void WillRead(std::span<const uint64_t> blocks) const;
  void Rest() const { bytes_->Rest(); }

 private:
  class Cache;
  explicit BlockFile(std::shared_ptr<const CatalogBytes> bytes);
  Status ReadHead(const BlockFileKind& kind);
  Status ReadIndex();
  uint64_t OffsetOf(uint64_t block) const;

  std::shared_ptr<const CatalogBytes> bytes_;
  uint64_t index_offset_ = 0;
  uint64_t blocks_ = 0;
  uint64_t index_hash_low_ = 0, index_hash_high_ = 0;
  std::shared_ptr<const std::vector<std::byte>> index_kept_;  // where there is no view
  ByteView index_;
  ByteView directory_;            // offsets of the blocks, and their end
  std::unique_ptr<Cache> cache_;  // where there is no view
  mutable Mutex mutex_;
  mutable std::vector<bool> checked_ FB_GUARDED_BY(mutex_);  // blocks of a view
};

// Puts such a file together. The blocks come in order, their check included; the index goes last.
class BlockFileWriter {
 public:
  BlockFileWriter() : file_(kBlockFileHeadBytes) {}
  // The check that the block begins with.
  uint64_t Add(ByteView block);
  uint64_t blocks() const { return offsets_.size(); }
  std::vector<std::byte> Finish(const BlockFileKind& kind, ByteView index);

 private:
  std::vector<std::byte> file_;
  std::vector<uint64_t> offsets_;  // of the blocks
};

}  // namespace forebay::catalog
