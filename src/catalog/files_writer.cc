#include "catalog/files_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "catalog/coding.h"
#include "catalog/files_format.h"

namespace forebay::catalog {
namespace {
constexpr size_t kLargest = size_t{1} << (kLargestSums - 1);
}  // namespace

FilesWriter::FilesWriter(std::string source_uri, KeyOrder order)
    : source_uri_(std::move(source_uri)), order_(order), file_(kFilesHeadBytes) {}

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
  Count(entry.size);
  block_.push_back(std::move(entry));
  if (block_.size() == kFilesPerBlock) CloseBlock();
  return {};
}

void FilesWriter::Count(uint64_t size) {
  ++samples_;
  total_bytes_ += size;
  largest_.push(size);
  if (largest_.size() > kLargest) largest_.pop();
}

void FilesWriter::CloseBlock() {
  if (block_.empty()) return;
  const std::vector<std::byte> packed = PackFiles(block_);
  uint64_t check = 0;
  std::memcpy(&check, packed.data(), sizeof(check));
  checks_.push_back(check);
  offsets_.push_back(file_.size());
  file_.insert(file_.end(), packed.begin(), packed.end());
  block_.clear();
}

void FilesWriter::CloseGeneration() {
  CloseBlock();
  const std::string before = segments_.empty() ? "" : segments_.back().hash;
  segments_.push_back({samples_, offsets_.size(), ContentHash(before, checks_)});
  checks_.clear();
}

std::vector<uint64_t> FilesWriter::LargestSums() {
  std::vector<uint64_t> sizes;
  for (; !largest_.empty(); largest_.pop()) sizes.push_back(largest_.top());
  std::ranges::reverse(sizes);
  std::vector<uint64_t> sums;
  uint64_t sum = 0;
  size_t taken = 0;
  for (int k = 0; k < kLargestSums; ++k) {
    for (; taken < std::min(sizes.size(), size_t{1} << k); ++taken) sum += sizes[taken];
    sums.push_back(sum);
  }
  return sums;
}

Result<std::vector<std::byte>> FilesWriter::Finish() {
  if (samples_ == 0) return Status(Code::kInvalidArgument, "a catalog without an object");
  if (segments_.empty() || samples_ > segments_.back().samples) CloseGeneration();
  Writer index;
  index.Text(source_uri_);
  index.Varint(static_cast<uint64_t>(order_));
  index.Varint(total_bytes_);
  index.Varint(segments_.size());
  for (const Segment& segment : segments_) {
    index.Varint(segment.samples);
    index.Varint(segment.blocks);
    index.Text(segment.hash);
  }
  const std::vector<uint64_t> sums = LargestSums();
  index.Varint(sums.size());
  for (const uint64_t sum : sums) index.Varint(sum);
  for (const uint64_t offset : offsets_) index.Word(offset);
  index.Word(uint64_t{file_.size()});
  const Hash128 hash = HashBytes(index.bytes());
  Writer head;
  head.Append(AsBytes(kFilesMagic));
  head.Word(kFilesVersion);
  head.Word(uint32_t{0});
  head.Word(uint64_t{file_.size() + index.size()});
  head.Word(uint64_t{file_.size()});
  head.Word(uint64_t{offsets_.size()});
  head.Word(hash.low);
  head.Word(hash.high);
  head.Word(HashBytes(head.bytes()).low);
  std::memcpy(file_.data(), head.bytes().data(), head.size());
  file_.insert(file_.end(), index.bytes().begin(), index.bytes().end());
  return std::move(file_);
}

}  // namespace forebay::catalog
