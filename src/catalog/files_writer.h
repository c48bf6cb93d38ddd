// Writes a catalog of plain objects, block by block as the objects come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catalog/block_file.h"
#include "catalog/files_catalog.h"
#include "catalog/largest_sums.h"

namespace forebay::catalog {

class FilesWriter {
 public:
  FilesWriter(std::string source_uri, KeyOrder order);

  // First of all: goes on from `earlier`, whose objects keep their numbers; what is added is one
  // more generation.
  Status Continue(const FilesCatalog& earlier);
  // Errors: kResourceExhausted (more than a catalog may hold), kInvalidArgument (with KeyOrder::
  // kBytes: a key that is not behind the one before).
  Status Add(FileEntry entry);
  // What was added was in the order of the keys' bytes.
  void MarkSorted() { order_ = KeyOrder::kBytes; }
  uint64_t added() const { return samples_ - earlier_; }
  // The whole file. Errors: kInvalidArgument when it would be empty.
  Result<std::vector<std::byte>> Finish();

 private:
  struct Segment {
    uint64_t samples, blocks;
    std::string hash;
  };
  void CloseBlock();
  void CloseGeneration();

  std::string source_uri_;
  KeyOrder order_;
  BlockFileWriter file_;
  std::vector<uint64_t> checks_;  // of this generation's blocks
  std::vector<Segment> segments_;
  std::vector<FileEntry> block_;
  std::string last_key_;
  uint64_t samples_ = 0;
  uint64_t earlier_ = 0;  // that there were before
  LargestSums largest_;
};

}  // namespace forebay::catalog
