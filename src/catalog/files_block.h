// A block of a catalog of plain objects: the keys, sizes and ETags of up to kFilesPerBlock objects,
// each to be had without decoding more than sixteen. Byte table: docs/formats/files.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

struct FileEntry {
  std::string key;  // relative to the data set's root URI
  uint64_t size = 0;
  std::string etag;
  std::string version_id;  // "": of no versioned bucket
};

inline constexpr uint32_t kFilesPerBlock = 1024;

// Not empty, and at most kFilesPerBlock.
std::vector<std::byte> PackFiles(const std::vector<FileEntry>& entries);

// A view of a packed block; the bytes outlive it.
class FilesBlock {
 public:
  // Looks at the head alone; its hash is known to be right. Errors: kDataLoss.
  static Result<FilesBlock> Open(ByteView bytes);

  uint32_t count() const { return count_; }
  uint64_t SizeOf(uint32_t i) const;  // i < count()
  // Errors: kDataLoss (bytes that a writer of these never made).
  Result<FileEntry> At(uint32_t i) const;

 private:
  struct Column {
    uint8_t kind = 0;
    ByteView bytes;
  };
  Result<std::string> TextOf(const Column& column, uint32_t i) const;

  uint32_t count_ = 0;
  uint8_t size_width_ = 0;
  uint64_t size_least_ = 0;
  ByteView sizes_;
  Column keys_, etags_, versions_;
};

}  // namespace forebay::catalog
