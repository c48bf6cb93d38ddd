#include "catalog/records_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "catalog/block_file.h"
#include "catalog/coding.h"
#include "catalog/text_column.h"

namespace forebay::catalog {
namespace {

constexpr uint32_t kRun = 16;  // records of which each builds on the one before
constexpr size_t kHeadBytes = 24;

// The fields of a record, and which of them have a checksum: few kinds in a block.
using Layout = std::vector<uint32_t>;

Layout LayoutOf(const RecordEntry& record) {
  Layout layout;
  for (const RecordField& field : record.fields) {
    layout.push_back(field.field * 2 + (field.crc32c ? 1 : 0));
  }
  return layout;
}

// Differences wrap around, so that any two offsets have one.
int64_t Difference(uint64_t to, uint64_t from) { return static_cast<int64_t>(to - from); }

void WriteRecord(const RecordEntry& record, uint64_t layout, uint64_t before, Writer& out) {
  out.Varint(layout);
  out.Zigzag(Difference(record.range.offset, before));
  out.Varint(record.range.size());
  uint64_t at = record.range.offset;
  for (const RecordField& field : record.fields) {
    out.Zigzag(Difference(field.range.offset, at));
    out.Varint(field.range.size());
    out.Zigzag(Difference(field.bytes, field.range.size()));
    if (field.crc32c) out.Word(*field.crc32c);
    at = field.range.end;
  }
}

}  // namespace

std::vector<std::byte> PackRecords(const std::vector<RecordEntry>& records,
                                   const std::vector<std::string>& keys) {
  FB_ASSERT(!records.empty() && records.size() <= kRecordsPerBlock);
  FB_ASSERT(keys.size() == records.size());
  std::map<Layout, uint64_t> numbers;
  std::vector<Layout> layouts;
  Writer starts, stream;
  uint32_t shard = 0;
  uint64_t before = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordEntry& record = records[i];
    Layout layout = LayoutOf(record);
    const auto [it, added] = numbers.try_emplace(std::move(layout), numbers.size());
    if (added) layouts.push_back(it->first);
    if (i % kRun == 0) {
      starts.Word(static_cast<uint32_t>(stream.size()));
      shard = 0;
      before = 0;
    }
    FB_ASSERT(record.shard >= shard);
    stream.Varint(record.shard - shard);
    if (record.shard != shard) before = 0;
    WriteRecord(record, it->second, before, stream);
    shard = record.shard;
    before = record.range.end;
  }
  Writer dictionary;
  dictionary.Varint(layouts.size());
  for (const Layout& layout : layouts) {
    dictionary.Varint(layout.size());
    for (const uint32_t field : layout) dictionary.Varint(field);
  }
  const bool has_keys = std::ranges::any_of(keys, [](const auto& key) { return !key.empty(); });
  std::vector<std::byte> packed_keys;
  if (has_keys) packed_keys = PackTexts({keys.begin(), keys.end()});
  Writer body;
  body.Word(static_cast<uint32_t>(records.size()));
  body.Word(static_cast<uint32_t>(dictionary.size()));
  body.Word(static_cast<uint32_t>(stream.size()));
  body.Word(static_cast<uint32_t>(packed_keys.size()));
  body.Append(dictionary.bytes());
  body.Append(starts.bytes());
  body.Append(stream.bytes());
  body.Append(packed_keys);
  Writer block;
  block.Word(HashBytes(body.bytes()).low);
  block.Append(body.bytes());
  return std::move(block.bytes());
}

Result<RecordsBlock> RecordsBlock::Open(ByteView bytes) {
  if (bytes.size() < kHeadBytes) return DamagedCatalog("a block is cut off");
  Reader head(bytes);
  (void)head.Word<uint64_t>();  // the hash
  RecordsBlock block;
  block.count_ = head.Word<uint32_t>();
  const uint64_t dictionary = head.Word<uint32_t>();
  const uint64_t records = head.Word<uint32_t>();
  const uint64_t keys = head.Word<uint32_t>();
  if (block.count_ == 0 || block.count_ > kRecordsPerBlock) {
    return DamagedCatalog("a block of no records, or too many");
  }
  const uint64_t starts = (block.count_ + kRun - 1) / kRun * sizeof(uint32_t);
  if (kHeadBytes + dictionary + starts + records + keys != bytes.size()) {
    return DamagedCatalog("a block's lengths do not add up");
  }
  Reader in(bytes.subspan(kHeadBytes, dictionary));
  block.layouts_.resize(in.Count(1));
  for (auto& layout : block.layouts_) {
    layout.resize(in.Count(1));
    for (uint32_t& field : layout) field = static_cast<uint32_t>(in.Varint());
  }
  if (!in.ok() || block.layouts_.size() > block.count_) {
    return DamagedCatalog("a block's layouts cannot be");
  }
  block.starts_ = bytes.subspan(kHeadBytes + dictionary, starts);
  block.records_ = bytes.subspan(kHeadBytes + dictionary + starts, records);
  block.keys_ = bytes.last(keys);
  block.has_keys_ = keys > 0;
  return block;
}

// Records that build on one another, from the first on.
class RecordsBlock::Run {
 public:
  static Result<Run> Open(const RecordsBlock& block, uint32_t run) {
    uint32_t start = 0;
    std::memcpy(&start, block.starts_.data() + run * sizeof(start), sizeof(start));
    if (start > block.records_.size()) return DamagedCatalog("a run begins behind its records");
    return Run(block, block.records_.subspan(start));
  }
  Status Next();
  const RecordEntry& record() const { return record_; }

 private:
  Run(const RecordsBlock& block, ByteView bytes) : block_(block), in_(bytes) {}
  const RecordsBlock& block_;
  Reader in_;
  RecordEntry record_;
  uint64_t before_ = 0;
};

Status RecordsBlock::Run::Next() {
  const uint64_t shards = in_.Varint();
  if (shards > 0) before_ = 0;
  record_.shard += static_cast<uint32_t>(shards);
  const uint64_t layout = in_.Varint();
  if (!in_.ok() || layout >= block_.layouts_.size()) return DamagedCatalog("a record is cut off");
  record_.range.offset = before_ + static_cast<uint64_t>(in_.Zigzag());
  record_.range.end = record_.range.offset + in_.Varint();
  before_ = record_.range.end;
  record_.fields.clear();
  uint64_t at = record_.range.offset;
  for (const uint32_t field : block_.layouts_[layout]) {
    RecordField one{.field = field / 2, .range = {}, .bytes = 0};
    one.range.offset = at + static_cast<uint64_t>(in_.Zigzag());
    one.range.end = one.range.offset + in_.Varint();
    one.bytes = one.range.size() + static_cast<uint64_t>(in_.Zigzag());
    if (field % 2 == 1) one.crc32c = in_.Word<uint32_t>();
    at = one.range.end;
    if (one.range.end < one.range.offset || !record_.range.Contains(one.range)) {
      return DamagedCatalog("a field lies outside of its record");
    }
    record_.fields.push_back(one);
  }
  if (!in_.ok() || record_.range.end < record_.range.offset) {
    return DamagedCatalog("a record is cut off");
  }
  return {};
}

Result<RecordEntry> RecordsBlock::At(uint32_t i) const {
  FB_ASSERT(i < count_);
  FB_ASSIGN_OR_RETURN(Run run, Run::Open(*this, i / kRun));
  for (uint32_t k = i / kRun * kRun; k <= i; ++k) FB_RETURN_IF_ERROR(run.Next());
  return run.record();
}

Status RecordsBlock::Read(uint32_t first, uint32_t end, RecordTable& records) const {
  FB_ASSERT(first <= end && end <= count_);
  while (first < end) {
    const uint32_t begin = first / kRun * kRun;
    FB_ASSIGN_OR_RETURN(Run run, Run::Open(*this, begin / kRun));
    for (uint32_t k = begin; k < std::min(begin + kRun, end); ++k) {
      FB_RETURN_IF_ERROR(run.Next());
      if (k >= first) records.Append(run.record());
    }
    first = begin + kRun;
  }
  return {};
}

Result<std::string> RecordsBlock::KeyOf(uint32_t i) const {
  if (!has_keys_) return std::string();
  return TextAt(keys_, count_, i);
}

}  // namespace forebay::catalog
