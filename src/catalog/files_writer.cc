#include "catalog/files_writer.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/coding.h"
#include "catalog/files_format.h"

namespace forebay::catalog {
FilesWriter::FilesWriter(std::string source_uri, KeyOrder order)
    : source_uri_(std::move(source_uri)), order_(order) {}

// Packed again rather than copied: packing is a function of the entries, so the blocks come out the
// same.
Status FilesWriter::Continue(const FilesCatalog& earlier) {
  order_ = earlier.key_order();
  for (const Generation& generation : earlier.generations()) {
    while (samples_ < generation.samples) {
      FB_ASSIGN_OR_RETURN(FileEntry entry, earlier.At(samples_));
      FB_RETURN_IF_ERROR(Add(std::move(entry)));
    }
    CloseGeneration();
    if (segments_.back().hash != generation.content_hash) {
      return Status(Code::kDataLoss, "the catalog's content hash is not that of its content");
    }
  }
  earlier_ = samples_;
  return {};
}

Status FilesWriter::Add(FileEntry entry) {
  if (samples_ == kFilesMost) {
    return Status(Code::kResourceExhausted,
                  fmt::format("more than {} objects in one catalog", kFilesMost));
  }
  const bool first = block_.empty() && checks_.empty();  // of its generation
  if (order_ == KeyOrder::kBytes && !first && entry.key <= last_key_) {
    return Status(Code::kInvalidArgument,
                  fmt::format("object {} comes after {}", entry.key, last_key_));
  }
  last_key_ = entry.key;
  ++samples_;
  largest_.Add(entry.size);
  block_.push_back(std::move(entry));
  if (block_.size() == kFilesPerBlock) CloseBlock();
  return {};
}

void FilesWriter::CloseBlock() {
  if (block_.empty()) return;
  checks_.push_back(file_.Add(PackFiles(block_)));
  block_.clear();
}

void FilesWriter::CloseGeneration() {
  CloseBlock();
  const std::string before = segments_.empty() ? "" : segments_.back().hash;
  segments_.push_back({samples_, file_.blocks(), ContentHash(before, checks_)});
  checks_.clear();
}

Result<std::vector<std::byte>> FilesWriter::Finish() {
  if (samples_ == 0) return Status(Code::kInvalidArgument, "a catalog without an object");
  if (segments_.empty() || samples_ > segments_.back().samples) CloseGeneration();
  Writer index;
  index.Text(source_uri_);
  index.Varint(static_cast<uint64_t>(order_));
  index.Varint(largest_.total());
  index.Varint(segments_.size());
  for (const Segment& segment : segments_) {
    index.Varint(segment.samples);
    index.Varint(segment.blocks);
    index.Text(segment.hash);
  }
  const std::vector<uint64_t> sums = largest_.Take();
  index.Varint(sums.size());
  for (const uint64_t sum : sums) index.Varint(sum);
  return file_.Finish(kFilesKind, index.bytes());
}

}  // namespace forebay::catalog
